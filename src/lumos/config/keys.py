"""Which keys a section has, under which spellings, and where a dotted key leads."""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec import inspect

from lumos.config.section import ALSO, INTERNAL, OLDER, ONE, Section
from lumos.errors import MisuseError, did_you_mean

# More keys than this are a list that nobody reads in an error.
_FEW: Final = 10


class Kind(NamedTuple):
    """What a value must be, in types and in words, and what else its annotation says of it."""

    type: inspect.Type
    words: str
    extra: dict[str, Any]

    @property
    def takes_text(self) -> bool:
        """Whether a single value can stand there."""
        match self.type:
            case inspect.UnionType(types=types):
                return any(kind_of(member).takes_text for member in types)
            case inspect.StructType():
                return section_of(self.type).shorthand is not None
            case inspect.VarTupleType() | inspect.DictType() | inspect.NoneType():
                return False
            case _:
                return True


class Key(NamedTuple):
    """A spelling of a field; `single` is one value of a list, `older` a spelling of the past."""

    field: str
    kind: Kind
    required: bool
    single: bool = False
    older: bool = False


class Target(NamedTuple):
    """The way to a key, each step with all the spellings it has, and what its value must be."""

    steps: tuple[tuple[str, frozenset[str]], ...]
    kind: Kind


class NoSuchKey(MisuseError):
    """A dotted key that leads nowhere."""


def kind_of(type: inspect.Type) -> Kind:
    """The type without what is wrapped around it: descriptions, and `None` for what is left out."""
    match type:
        case inspect.Metadata(type=inner, extra_json_schema=described, extra=extra):
            kind = kind_of(inner)
            words = (described or {}).get("description", kind.words)
            return Kind(kind.type, words, kind.extra | (extra or {}))
        case inspect.UnionType(types=types):
            members = [each for each in types if not isinstance(each, inspect.NoneType)]
            return kind_of(members[0]) if len(members) == 1 else Kind(type, "", {})
        case _:
            return Kind(type, "", {})


def section_of(struct: inspect.StructType) -> type[Section]:
    """The section that the type stands for; there are no other structs among the settings."""
    assert issubclass(struct.cls, Section)
    return struct.cls


@cache
def fields_of(section: type[Section]) -> dict[str, Key]:
    """The section's fields under their own names."""
    info = inspect.type_info(section)
    assert isinstance(info, inspect.StructType)
    return {
        field.name: Key(field.name, kind_of(field.type), field.required) for field in info.fields
    }


@cache
def keys_of(section: type[Section]) -> dict[str, Key]:
    """All spellings of the keys that a person may write."""
    keys: dict[str, Key] = {}
    for name, key in fields_of(section).items():
        extra = key.kind.extra
        if extra.get(INTERNAL) or name == section.rest:
            continue
        keys[name] = key
        keys |= dict.fromkeys(extra.get(ALSO, ()), key)
        keys |= {spelling: key._replace(older=True) for spelling in extra.get(OLDER, ())}
        keys |= {spelling: key._replace(single=True) for spelling in extra.get(ONE, ())}
    return keys


def target(section: type[Section], path: list[str], parent: str = "") -> Target:
    """Where a path of keys leads in the section; below free-form keys a path is one dotted key."""
    name, *rest = path
    keys = keys_of(section)
    if name in keys:
        key = keys[name]
        spellings = {each for each, other in keys.items() if other.field == key.field}
        return _below(key.kind, (name, frozenset(spellings)), rest, parent)
    if section.rest is not None:
        kind = fields_of(section)[section.rest].kind
        if isinstance(kind.type, inspect.DictType):
            return _in_map(kind.type, path, parent)
    raise NoSuchKey(unknown_key(name, parent, keys))


def _below(kind: Kind, step: tuple[str, frozenset[str]], rest: list[str], parent: str) -> Target:
    here = f"{parent}.{step[0]}" if parent else step[0]
    if not rest:
        return Target((step,), kind)
    match kind.type:
        case inspect.StructType() as struct:
            found = target(section_of(struct), rest, here)
        case inspect.DictType() as map_type:
            found = _in_map(map_type, rest, here)
        case _:
            raise NoSuchKey(f"'{here}' has no keys below it, so '{rest[0]}' means nothing.")
    return Target((step, *found.steps), found.kind)


def _in_map(map_type: inspect.DictType, path: list[str], parent: str) -> Target:
    kind = kind_of(map_type.value_type)
    if kind.takes_text and not isinstance(kind.type, inspect.StructType):
        path = [".".join(path)]
    name, *rest = path
    return _below(kind, (name, frozenset((name,))), rest, parent)


def unknown_key(name: str, parent: str, known: Iterable[str]) -> str:
    """The sentence about a key that does not exist."""
    known = sorted(known)
    hint = did_you_mean(name, known)
    if not hint and (len(known) <= _FEW or not parent):
        hint = f" Valid keys: {', '.join(known)}." if known else " It takes no keys."
    return f"unknown key '{name}'{f' in {parent}' if parent else ''}.{hint}"
