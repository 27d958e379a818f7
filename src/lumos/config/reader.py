"""Reads sections from the YAML tree, guided by type annotations, and collects all problems."""

import math
import os.path
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import inspect

from lumos.config.secret import Secret, guard_option, is_secret_name, mask_secret_text
from lumos.config.section import (
    ALIASES,
    FORMER_NAMES,
    INTERNAL,
    PATH,
    SINGULAR_NAMES,
    SPLIT,
    Section,
)
from lumos.config.settings import FormerKey
from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigProblem,
    ListNode,
    MappingEntry,
    MappingNode,
    ScalarNode,
    is_empty,
    lift_nested,
)
from lumos.errors import MisuseError, did_you_mean

# Error messages omit longer lists of keys.
_MAX_LISTED_KEYS: Final = 10


class ValueKind(NamedTuple):
    """The type of a value, its description for users, and further annotations."""

    type: inspect.Type
    description: str
    extra: dict[str, Any]

    @property
    def accepts_text(self) -> bool:
        """Whether a single text is a valid form of the value."""
        match self.type:
            case inspect.UnionType(types=types):
                return any(value_kind(member).accepts_text for member in types)
            case inspect.StructType():
                return section_of(self.type).shorthand is not None
            case inspect.VarTupleType() | inspect.DictType() | inspect.NoneType():
                return False
            case _:
                return True


class SectionKey(NamedTuple):
    """A field by one of its names.

    `is_single`: the name is for a single item of a list. `is_former`: it is a former name.
    """

    field: str
    kind: ValueKind
    required: bool
    is_single: bool = False
    is_former: bool = False


class KeyTarget(NamedTuple):
    """The steps to a key, each with all its spellings, and the kind of its value."""

    steps: tuple[tuple[str, frozenset[str]], ...]
    kind: ValueKind


class UnknownKey(MisuseError):
    """A dotted key that does not exist."""


def value_kind(type: inspect.Type) -> ValueKind:
    """The type without its metadata and, for optional values, without `None`."""
    match type:
        case inspect.Metadata(type=inner, extra_json_schema=described, extra=extra):
            kind = value_kind(inner)
            description = (described or {}).get("description", kind.description)
            return ValueKind(kind.type, description, kind.extra | (extra or {}))
        case inspect.UnionType(types=types):
            members = [each for each in types if not isinstance(each, inspect.NoneType)]
            return value_kind(members[0]) if len(members) == 1 else ValueKind(type, "", {})
        case _:
            return ValueKind(type, "", {})


def section_of(struct: inspect.StructType) -> type[Section]:
    """The section class of a struct type."""
    assert issubclass(struct.cls, Section)
    return struct.cls


@cache
def fields_of(section: type[Section]) -> dict[str, SectionKey]:
    """The fields of a section by name."""
    info = inspect.type_info(section)
    assert isinstance(info, inspect.StructType)
    return {
        field.name: SectionKey(field.name, value_kind(field.type), field.required)
        for field in info.fields
    }


@cache
def keys_of(section: type[Section]) -> dict[str, SectionKey]:
    """All spellings of the keys of a section."""
    keys: dict[str, SectionKey] = {}
    for name, key in fields_of(section).items():
        extra = key.kind.extra
        if extra.get(INTERNAL) or name == section.rest:
            continue
        keys[name] = key
        keys |= dict.fromkeys(extra.get(ALIASES, ()), key)
        keys |= {spelling: key._replace(is_former=True) for spelling in extra.get(FORMER_NAMES, ())}
        keys |= {
            spelling: key._replace(is_single=True) for spelling in extra.get(SINGULAR_NAMES, ())
        }
    return keys


def resolve_key(section: type[Section], path: list[str], parent: str = "") -> KeyTarget:
    """Resolve a path of keys; under free-form mappings, the remaining path is one dotted key."""
    name, *rest = path
    keys = keys_of(section)
    if name in keys:
        key = keys[name]
        spellings = {each for each, other in keys.items() if other.field == key.field}
        return _resolve_below(key.kind, (name, frozenset(spellings)), rest, parent)
    if section.rest is not None:
        kind = fields_of(section)[section.rest].kind
        if isinstance(kind.type, inspect.DictType):
            return _in_map(kind.type, path, parent)
    raise UnknownKey(unknown_key(name, parent, keys))


def _resolve_below(
    kind: ValueKind, step: tuple[str, frozenset[str]], rest: list[str], parent: str
) -> KeyTarget:
    path_here = f"{parent}.{step[0]}" if parent else step[0]
    if not rest:
        return KeyTarget((step,), kind)
    match kind.type:
        case inspect.StructType() as struct:
            target = resolve_key(section_of(struct), rest, path_here)
        case inspect.DictType() as map_type:
            target = _in_map(map_type, rest, path_here)
        case _:
            raise UnknownKey(f"'{path_here}' has no keys below it, so there is no '{rest[0]}'.")
    return KeyTarget((step, *target.steps), target.kind)


def _in_map(map_type: inspect.DictType, path: list[str], parent: str) -> KeyTarget:
    kind = value_kind(map_type.value_type)
    if kind.accepts_text and not isinstance(kind.type, inspect.StructType):
        path = [".".join(path)]
    name, *rest = path
    return _resolve_below(kind, (name, frozenset((name,))), rest, parent)


def unknown_key(name: str, parent: str, known: Iterable[str]) -> str:
    known = sorted(known)
    hint = did_you_mean(name, known)
    if not hint and (len(known) <= _MAX_LISTED_KEYS or not parent):
        hint = f" Valid keys: {', '.join(known)}." if known else " It takes no keys."
    return f"unknown key '{name}'{f' in {parent}' if parent else ''}.{hint}"


_SWITCHES: Final = {
    "true": True, "yes": True, "on": True, "false": False, "no": False, "off": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z", re.ASCII)
_NUMBER: Final = re.compile(
    r"[-+]?((0|[1-9][0-9_]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?\Z", re.ASCII
)
_MAX_NUMBER_LENGTH: Final = 40
_MAX_ECHO_LENGTH: Final = 60


class InvalidValue:
    """Marks a value that could not be read."""


INVALID: Final = InvalidValue()


def read_scalar(node: ScalarNode, kind: ValueKind) -> object:
    """The value of the expected kind, or `INVALID`."""
    match kind.type:
        case inspect.CustomType(cls=cls) if issubclass(cls, Secret):
            return cls(node.text)
        case inspect.StrType():
            if not matches(node.text, kind.type):
                return INVALID
            return _absolute_path(node) if PATH in kind.extra else node.text
        case inspect.LiteralType(values=values):
            return node.text if node.text in values else INVALID
        case inspect.EnumType(cls=cls):
            # An enumeration may accept more spellings than its values.
            try:
                return cls(node.text)
            except ValueError:
                return INVALID
        case inspect.BoolType():
            return _SWITCHES.get(node.text.lower(), INVALID) if node.plain else INVALID
        case inspect.IntType() | inspect.FloatType():
            return _number(node, kind.type)
        case _:
            raise TypeError(f"{kind.type} is not a scalar type")


def matches(text: str, type: inspect.Type) -> bool:
    """Whether a text matches the pattern of its type, if there is one."""
    pattern = type.pattern if isinstance(type, inspect.StrType) else None
    return pattern is None or re.search(pattern, text) is not None


def read_untyped(node: ScalarNode) -> str | int | float | bool | None:
    """Read a value without a declared type: its type is guessed from its text."""
    if node.empty:
        return None
    if not node.plain or len(node.text) > _MAX_NUMBER_LENGTH:
        return node.text
    if node.text.lower() in ("true", "false"):
        return node.text.lower() == "true"
    if _INTEGER.match(node.text):
        return int(node.text.replace("_", ""))
    return float(node.text.replace("_", "")) if _NUMBER.match(node.text) else node.text


def choices(type: inspect.Type) -> tuple[str, ...]:
    """The allowed values of a closed type."""
    match type:
        case inspect.LiteralType(values=values):
            return tuple(str(value) for value in values)
        case inspect.EnumType(cls=cls):
            return tuple(member.value for member in cls)
        case _:
            return ()


def describe_kind(kind: ValueKind) -> str:
    """The expected kind of value, for error messages."""
    match kind.type:
        case _ if kind.description:
            return kind.description
        case inspect.LiteralType() | inspect.EnumType():
            return f"one of {', '.join(choices(kind.type))}"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.VarTupleType():
            return "a list, such as [a, b]"
        case inspect.StructType() | inspect.DictType():
            return "a mapping"
        case _:
            return "text"


def describe_node(node: ConfigNode, *, show_value: bool) -> str:
    """The value that was found, for error messages; values of variables are never shown."""
    match node:
        case ScalarNode() if node.empty:
            return "empty"
        case ScalarNode():
            text = mask_secret_text(node.written or node.text)
            shown = text if len(text) <= _MAX_ECHO_LENGTH else f"{text[:_MAX_ECHO_LENGTH]}..."
            return f"'{shown}'" if show_value else "a single value"
        case ListNode():
            return "a list"
        case MappingNode():
            return "a mapping"
        case _:
            raise TypeError(f"{type(node).__name__} is not a node of the tree")


def _absolute_path(node: ScalarNode) -> str:
    """The absolute path; relative paths are relative to the folder of the file."""
    if "://" in node.text:
        return node.text
    return str(Path(node.position.folder, os.path.expanduser(node.text)))


def _number(
    node: ScalarNode, type: inspect.IntType | inspect.FloatType
) -> int | float | InvalidValue:
    is_integer = isinstance(type, inspect.IntType)
    pattern = _INTEGER if is_integer else _NUMBER
    if not node.plain or len(node.text) > _MAX_NUMBER_LENGTH or not pattern.match(node.text):
        return INVALID
    digits = node.text.replace("_", "")
    number = int(digits) if is_integer else float(digits)
    too_small = type.ge is not None and number < type.ge
    too_large = type.le is not None and number > type.le
    return INVALID if too_small or too_large or not math.isfinite(number) else number


Variants: TypeAlias = Mapping[type[Section], Mapping[str, type[Section]]]


class SectionReader:
    """Reads sections; the key `type` selects one of the `variants` of a section."""

    def __init__(self, variants: Variants, problems: list[ConfigProblem]) -> None:
        self._variants = variants
        self.problems = problems
        self.former_keys: list[FormerKey] = []

    def section(
        self, node: ConfigNode, section: type[Section], *, outer_keys: Iterable[str] = ()
    ) -> Section | InvalidValue:
        """Read a section; `outer_keys` of the enclosing section are suggested for unknown keys."""
        if isinstance(node, ScalarNode) and section.shorthand is not None:
            entry = MappingEntry(position=node.position, node=node)
            node = MappingNode(
                position=node.position, path=node.path, entries={section.shorthand: entry}
            )
        if not isinstance(node, MappingNode):
            return self._report_invalid_value(node, "a mapping", show_value=False)
        if section.nested is not None:
            node, duplicates = lift_nested(node, section.nested)
            self.problems += duplicates
        variant = self._select_variant(node, section)
        if variant is None:
            return INVALID
        before = len(self.problems)
        values = self._values(node, variant, frozenset(outer_keys))
        if len(self.problems) > before:
            return INVALID
        try:
            return variant(**values)
        except MisuseError as error:
            self._add_problem(node, f"{node.path}: {error}" if node.path else str(error))
            return INVALID

    def _select_variant(self, node: MappingNode, section: type[Section]) -> type[Section] | None:
        """The section itself, or the variant that the key `type` selects."""
        if section not in self._variants:
            return section
        variants = self._variants[section]
        entry = node.entries.get("type")
        if entry is None or is_empty(entry.node):
            self._add_problem(
                node, f"{node.path} needs 'type', one of {', '.join(sorted(variants))}."
            )
            return None
        kind = ValueKind(inspect.LiteralType(values=tuple(sorted(variants))), "", {})
        value = self._value(entry.node, kind)
        return variants[value] if isinstance(value, str) else None

    def _values(
        self, node: MappingNode, section: type[Section], outer_keys: frozenset[str]
    ) -> dict[str, object]:
        keys = keys_of(section)
        values: dict[str, object] = {}
        names_in_file: dict[str, str] = {}
        for name, entry in node.entries.items():
            key = keys.get(name)
            if key is None or is_empty(entry.node):
                continue
            if key.field in names_in_file:
                other = names_in_file[key.field]
                self._add_problem_at(
                    entry, f"'{other}' and '{name}' mean the same. Keep one of them."
                )
                continue
            names_in_file[key.field] = name
            values[key.field] = self._field(key, entry)
        self._require(node, section, values)
        unknown_entries = {name: entry for name, entry in node.entries.items() if name not in keys}
        return values | self._rest(
            node.with_entries(unknown_entries), section, outer_keys | set(keys)
        )

    def _field(self, key: SectionKey, entry: MappingEntry) -> object:
        node = entry.node
        if key.is_former:
            line = entry.position.line
            self.former_keys.append(FormerKey(key=node.path, current_key=key.field, line=line))
        if key.is_single:
            node = ListNode(position=node.position, path=node.path, items=(node,))
        return self._value(node, key.kind)

    def _require(
        self, node: MappingNode, section: type[Section], values: dict[str, object]
    ) -> None:
        keys = keys_of(section)
        for name, key in keys.items():
            if key.required and name == key.field and name not in values:
                spellings = [each for each, other in keys.items() if other.field == name]
                wanted = " or ".join(f"'{spelling}'" for spelling in spellings)
                self._add_problem(node, f"{node.path} needs {wanted}.")

    def _rest(
        self, node: MappingNode, section: type[Section], known: frozenset[str]
    ) -> dict[str, object]:
        if section.rest is None:
            for name, entry in node.entries.items():
                self._add_problem_at(entry, unknown_key(name, node.path, known))
            return {}
        kind = fields_of(section)[section.rest].kind
        if isinstance(kind.type, inspect.StructType):
            return {section.rest: self.section(node, section_of(kind.type), outer_keys=known)}
        return {section.rest: self._value(node, kind)}

    def _value(self, node: ConfigNode, kind: ValueKind) -> object:
        if isinstance(node, ScalarNode) and node.problem:
            self._add_problem(node, node.problem)
            return INVALID
        match kind.type:
            case inspect.UnionType(types=types):
                return self._value(node, _union_member(types, node, kind.description))
            case inspect.StructType() as struct:
                return self.section(node, section_of(struct))
            case inspect.VarTupleType():
                return self._items(node, kind)
            case inspect.DictType():
                return self._map(node, kind)
            case _:
                value: object = INVALID
                if isinstance(node, ScalarNode) and not node.empty:
                    value = read_scalar(node, kind)
                return (
                    self._report_invalid_value(node, describe_kind(kind), kind)
                    if value is INVALID
                    else value
                )

    def _items(self, node: ConfigNode, kind: ValueKind) -> object:
        assert isinstance(kind.type, inspect.VarTupleType)
        if isinstance(node, ScalarNode) and SPLIT in kind.extra and not node.empty:
            parts = (part.strip() for part in node.text.split(kind.extra[SPLIT]))
            return tuple(part for part in parts if part)
        if not isinstance(node, ListNode):
            return self._report_invalid_value(node, describe_kind(kind))
        if len(node.items) < (kind.type.min_length or 0):
            self._add_problem(node, f"{node.path} must have at least one value.")
        item = value_kind(kind.type.item_type)
        return tuple(self._value(each, item) for each in node.items)

    def _map(self, node: ConfigNode, kind: ValueKind) -> object:
        assert isinstance(kind.type, inspect.DictType)
        if not isinstance(node, MappingNode):
            return self._report_invalid_value(node, describe_kind(kind), show_value=False)
        key_kind, item_kind = value_kind(kind.type.key_type), value_kind(kind.type.value_type)
        values = {}
        for name, entry in node.entries.items():
            if not matches(name, key_kind.type):
                self._add_problem_at(
                    entry, f"the key '{name}' in {node.path} must be {key_kind.description}."
                )
            elif item_kind.type == inspect.CustomType(object):
                values[name] = self._free_form_value(entry.node, name)
            elif not is_empty(entry.node):
                values[name] = self._value(entry.node, item_kind)
        return values

    def _free_form_value(self, node: ConfigNode, key: str) -> object:
        """Read a free-form value; all values below a key with the name of a secret are secrets."""
        match node:
            case MappingNode():
                return {
                    name: self._free_form_value(entry.node, f"{key}.{name}")
                    for name, entry in node.entries.items()
                }
            case ListNode():
                return [self._free_form_value(each, key) for each in node.items]
            case ScalarNode() if node.problem:
                self._add_problem(node, node.problem)
                return INVALID
            case ScalarNode():
                value = read_untyped(node)
                if value is not None and is_secret_name(key):
                    return Secret(node.text)
                return guard_option(key, value) if isinstance(value, str) else value
            case _:
                raise TypeError(f"{type(node).__name__} is not a node of the tree")

    def _report_invalid_value(
        self,
        node: ConfigNode,
        description: str,
        kind: ValueKind | None = None,
        *,
        show_value: bool = True,
    ) -> InvalidValue:
        known = choices(kind.type) if kind is not None else ()
        hint = did_you_mean(node.text, known) if isinstance(node, ScalarNode) else ""
        subject = node.path or "The configuration"
        actual = describe_node(node, show_value=show_value)
        self._add_problem(node, f"{subject} must be {description}, not {actual}.{hint}")
        return INVALID

    def _add_problem(self, node: ConfigNode, text: str) -> None:
        self.problems.append(ConfigProblem(position=node.position, key=node.path, text=text))

    def _add_problem_at(self, entry: MappingEntry, text: str) -> None:
        self.problems.append(ConfigProblem(position=entry.position, key=entry.node.path, text=text))


def _union_member(types: tuple[inspect.Type, ...], node: ConfigNode, description: str) -> ValueKind:
    """The member of a union type that can be read from a node."""
    kinds = [value_kind(each) for each in types]
    is_text = isinstance(node, ScalarNode)
    kind = next((each for each in kinds if each.accepts_text == is_text), kinds[0])
    return kind._replace(
        description=description or " or ".join(describe_kind(each) for each in kinds)
    )
