"""Converts paths of fields between Lumos and DataHub, which has plain and typed paths.

`orders.items[].price` in Lumos is `orders.items.price` as a plain path and
`[version=2.0].[type=struct].[type=struct].orders.[type=array].[type=struct].items.[type=double].price`
as a typed path (version 2.0).
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from lumos.model.types import Array, DataType, Map, Struct, kind_of, quoted_name

VERSION: Final = "[version=2.0]"
ROOT: Final = f"{VERSION}.[type=struct]"
KEY_ROOT: Final = f"{VERSION}.[key=True].[type=struct]"
_TOKEN: Final = re.compile(r"\[(?P<key>type|key)=(?P<value>[^\]]*)\](?=\.|\Z)")
_NEXT_TYPE: Final = re.compile(r"\.(?=\[(?:type|key)=[^\]]*\](?:\.|\Z))")
_CONTAINERS: Final = {"array": "[]", "map": "{}"}
_STEP: Final = re.compile(r"`((?:[^`]|``)*)`|\[\]|\{key\}|\{\}|<\d+>|[^.`\[\]{}<>]+|.", re.DOTALL)
_CONTAINER_MARK: Final = re.compile(r"\[\]|\{key\}|\{\}|<\d+>|\.", re.DOTALL)
_TOKEN_BY_KIND: Final = {
    "INT8": "int", "INT16": "int", "INT32": "int", "INT64": "long",
    "UINT8": "int", "UINT16": "int", "UINT32": "long", "UINT64": "long",
    "FLOAT16": "float", "FLOAT32": "float", "FLOAT64": "double", "BINARY": "bytes",
}  # fmt: skip


class FieldPathStep(NamedTuple):
    """A name in a path, and the types before it."""

    name: str
    types: tuple[str, ...] = ()


class FieldPath(NamedTuple):
    """The path of a field, and whether it is part of a separate key schema."""

    steps: tuple[FieldPathStep, ...]
    is_key: bool = False
    is_typed: bool = False

    @property
    def lumos_path(self) -> str:
        """The path as Lumos writes it."""
        *parents, last = self.steps
        return "".join(f"{_lumos_step(step)}." for step in parents) + quoted_name(last.name)


def parse(text: str) -> FieldPath:
    """Parse a path; a plain path is a single step, since names may contain dots."""
    if not text.startswith(VERSION):
        return FieldPath((FieldPathStep(text),))
    steps: list[FieldPathStep] = []
    types: list[str] = []
    is_key = False
    rest = text[len(VERSION) :].removeprefix(".")
    while rest:
        if token := _TOKEN.match(rest):
            if token["key"] == "key":
                is_key = True
            else:
                types.append(token["value"])
            rest = rest[token.end() :].removeprefix(".")
            continue
        end = _NEXT_TYPE.search(rest)
        name = rest[: end.start()] if end else rest
        steps.append(FieldPathStep(name, tuple(types)))
        types = []
        rest = rest[end.end() :] if end else ""
    if types or not steps:
        steps.append(FieldPathStep("", tuple(types)))
    return FieldPath((_without_root(steps[0]), *steps[1:]), is_key, is_typed=True)


def to_plain(lumos_path: str) -> str:
    """The plain DataHub path of a path in Lumos: names and dots."""
    return "".join(
        step[1].replace("``", "`") if step.group().startswith("`") and step[1] is not None
        else "" if _CONTAINER_MARK.fullmatch(step.group()) and step.group() != "." else step.group()
        for step in _STEP.finditer(lumos_path)
    )  # fmt: skip


def typed_path(path: str, name: str, type: DataType) -> str:
    """The typed path of a member of the field at `path`."""
    tokens = ".".join(f"[type={token}]" for token in _tokens(type))
    return f"{path}.{tokens}.{name}" if name else f"{path}.{tokens}"


def _tokens(type: DataType) -> Iterator[str]:
    while True:
        match type:
            case Array(element, _):
                yield "array"
                type = element
            case Map(_, value, _):
                yield "map"
                type = value
            case Struct():
                yield "struct"
                return
            case _:
                kind = kind_of(type)
                yield _TOKEN_BY_KIND.get(kind, kind.lower())
                return


def _without_root(step: FieldPathStep) -> FieldPathStep:
    """The first step without the type of the root record, if it has one."""
    has_root = len(step.types) > 1 and step.types[0] not in {*_CONTAINERS, "union"}
    return FieldPathStep(step.name, step.types[1:] if has_root else step.types)


def _lumos_step(step: FieldPathStep) -> str:
    marks = (_CONTAINERS.get(type, "") for type in step.types)
    return quoted_name(step.name) + "".join(marks)
