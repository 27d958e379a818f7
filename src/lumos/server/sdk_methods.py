"""Methods of the SDK as values, with the JSON types of their parameters and results.

A method is identified by its path from `Lumos`, such as `schema.history`. Server, OpenAPI document
and client all read its signature, so that they cannot differ from the SDK.
"""

import ast
import inspect
import sys
import threading
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from lumos.sdk import Lumos

# Types whose values are strings in JSON, so that a union with `str` is just `str`.
_TEXT_TYPES: Final = (date, datetime, timedelta, Decimal)
_NO_VALUES: Final[Mapping[str, Any]] = types.MappingProxyType({})
_LISTS: Final = (Collection, Iterable, Sequence, list, set)


# Integers that fit into a column of the store.
_INT32: Final = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_LIMIT: Final = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_POSITION: Final = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_INTEGER_BOUNDS: Final = {"limit": _LIMIT, "top": _LIMIT, "depth": _LIMIT, "after": _POSITION,
                    "before": _POSITION}  # fmt: skip

# Python 3.11 fails if two threads parse at the same time (SystemError: recursion depth mismatch).
_PARSE_LOCK: Final = threading.Lock()


class Parameter(NamedTuple):
    """A parameter of a method.

    `default` is `inspect.Parameter.empty` for required parameters. The kind `rest` is `*args`, and
    `option` is one key of `**options`.
    """

    name: str
    type: Any
    default: Any
    kind: Literal["positional", "rest", "keyword", "option"]

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def is_list(self) -> bool:
        """Whether the parameter may occur several times in a query."""
        return any(
            get_origin(each) in (tuple, list, dict) for each in (self.type, *get_args(self.type))
        )

    @property
    def is_mapping(self) -> bool:
        """Whether the values in a query are written as `key=value`."""
        return any(get_origin(each) is dict for each in (self.type, *get_args(self.type)))


class SdkMethod:
    """A method of the SDK; `omitted` are parameters that a client cannot give."""

    def __init__(self, path: str, omitted: Collection[str] = ()) -> None:
        self.path = path
        self._function = _function(path)
        self._omitted = frozenset(omitted)

    @property
    def doc(self) -> str:
        """The docstring of the method."""
        return inspect.getdoc(self._function) or ""

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return _hints(self._function)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters of the method without `self`."""
        signature = inspect.signature(self._function)
        parameters = [each for name, each in signature.parameters.items() if name != "self"]
        return signature.replace(parameters=parameters)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that clients can send: all except callbacks and omitted ones."""
        return tuple(
            parameter
            for each in self.signature.parameters.values()
            for parameter in self._wire_parameters(each)
            if parameter.name not in self._omitted
        )

    def _wire_parameters(self, each: inspect.Parameter) -> Iterator[Parameter]:
        hint = self._hints.get(each.name, Any)
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            options = _hints(get_args(hint)[0])
            for name, type in options.items():
                yield Parameter(name, _with_bounds(name, wire_type(type)), UNSET, "option")
        elif each.kind is inspect.Parameter.VAR_POSITIONAL:
            yield Parameter(each.name, tuple[wire_type(hint), ...], (), "rest")  # type: ignore[misc]
        elif not _is_callback(hint):
            is_keyword = each.kind is inspect.Parameter.KEYWORD_ONLY
            kind: Literal["keyword", "positional"] = "keyword" if is_keyword else "positional"
            yield Parameter(each.name, _with_bounds(each.name, wire_type(hint)), each.default, kind)

    @cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """A struct with a field for each parameter."""
        fields: list[Any] = []
        for each in self.parameters:
            if each.is_required:
                fields.append((each.name, each.type))
            elif each.default is UNSET:
                fields.append((each.name, each.type | UnsetType, UNSET))
            else:
                default = each.default.value if isinstance(each.default, Enum) else each.default
                fields.append((each.name, each.type, default))
        name = "".join(part.title() for part in self.path.replace("_", ".").split("."))
        return msgspec.defstruct(
            f"{name}Arguments",
            fields,
            kw_only=True,
            forbid_unknown_fields=True,
            omit_defaults=True,
        )

    @cached_property
    def result(self) -> Any:
        """The return type of the method or, for an iterator, the type of its items."""
        hint = self._hints["return"]
        return get_args(hint)[0] if self.is_stream else hint

    @cached_property
    def is_stream(self) -> bool:
        """Whether the method returns an iterator, whose items are sent one by one."""
        return get_origin(self._hints["return"]) in (Iterator, Iterable)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by the name of the parameter, without omitted ones."""
        bound = self.signature.bind(*args, **kwargs)
        given: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                given |= value
            else:
                given[name] = value
        return given

    def call(
        self, lumos: Lumos, arguments: msgspec.Struct, *, fixed: Mapping[str, Any] = _NO_VALUES
    ) -> Any:
        """Call the method of a Lumos, with `fixed` values for some omitted parameters."""
        *owners, name = self.path.split(".")
        method: Any = lumos
        for owner in owners:
            method = getattr(method, owner)
        method = getattr(method, name)
        positional: list[Any] = []
        keywords: dict[str, Any] = dict(fixed)
        for each in self.parameters:
            value = getattr(arguments, each.name)
            if value is UNSET:
                continue
            if each.kind == "positional":
                positional.append(value)
            elif each.kind == "rest":
                positional += value
            else:
                keywords[each.name] = value
        return method(*positional, **keywords)


@cache
def wire_type(hint: Any) -> Any:
    """The type of a type hint in JSON, for example `str` for `Path` and a tuple for a list."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        members = tuple(dict.fromkeys(map(wire_type, args)))
        if str in members:
            members = tuple(each for each in members if not _is_text(each))
            members = (str, *(each for each in members if each is not str))
        return Union[members]  # noqa: UP007 - the number of members is not known
    if hint is Path:
        return str
    if origin in _LISTS:
        return tuple[wire_type(args[0]), ...]  # type: ignore[misc]
    if origin in (Mapping, dict):
        return dict[wire_type(args[0]), wire_type(args[1])]  # type: ignore[misc]
    if origin is tuple:
        return tuple[tuple(each if each is ... else wire_type(each) for each in args)]  # type: ignore[misc]
    return hint


def _with_bounds(name: str, type: Any) -> Any:
    """The type with bounds for integers: those of `_INTEGER_BOUNDS` by name, else 32 bits."""
    bounded = _INTEGER_BOUNDS.get(name, _INT32)
    if type is int:
        return bounded
    if get_origin(type) is Union and int in get_args(type):
        members = tuple(bounded if each is int else each for each in get_args(type))
        return Union[members]  # noqa: UP007 - the number of members is not known
    return type


def _is_text(hint: Any) -> bool:
    """Whether values of a type are strings in JSON, so that a union with `str` is ambiguous."""
    if hint in _TEXT_TYPES:
        return True
    if get_origin(hint) is Literal:
        return all(isinstance(each, str) for each in get_args(hint))
    return isinstance(hint, type) and issubclass(hint, Enum)


def _is_callback(hint: Any) -> bool:
    return get_origin(hint) is Callable or getattr(hint, "_is_protocol", False)


def _function(path: str) -> Any:
    """The function at a path from `Lumos`, found by return types without creating a `Lumos`."""
    *owners, name = path.split(".")
    cls: type = Lumos
    for owner in owners:
        member: Any = inspect.getattr_static(cls, owner)
        getter = member.func if isinstance(member, cached_property) else member.fget
        cls = _hints(getter)["return"]
    function = inspect.getattr_static(cls, name)
    return function.__func__ if isinstance(function, staticmethod) else function


def _hints(item: Any) -> dict[str, Any]:
    return typing.get_type_hints(item, localns=_names_for_type_checkers(item.__module__))


@cache
def _names_for_type_checkers(module: str) -> dict[str, Any]:
    """The names that a module imports under `if TYPE_CHECKING`.

    Modules import features only when they need them, so the names are missing at run time.
    """
    with _PARSE_LOCK:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    blocks = [
        node.body
        for node in tree.body
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    ]
    return {
        alias.asname or alias.name: getattr(import_module(node.module), alias.name)
        for body in blocks
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
