"""Canonical JSON of entries and headers, and content hashes.

Canonical JSON has no spaces and no unknown values. Its keys are in the order of the format; keys of
free-form maps are sorted. The hash of an entry is the SHA-256 of its canonical JSON, and is stored
under its last key, `content_hash`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from lumos.errors import MisuseError
from lumos.model.types import DataType, SchemaSyntaxError, parse_type
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader

Value = TypeVar("Value")

HASH_KEY: Final = "content_hash"
_HASH_START: Final = f',"{HASH_KEY}":"'.encode()
_HASH_LENGTH: Final = 64
_HASH_SUFFIX_LENGTH: Final = len(_HASH_START) + _HASH_LENGTH + len(b'"}')
_KEY_STARTS: Final = {kind.key: f'{{"{kind.key}":"'.encode() for kind in KINDS}
_MAX_CACHED_TYPES: Final = 65_536
_ERROR_PATH: Final = re.compile(r" - at `(?P<root>key in )?\$(?P<path>.*)`\Z", re.DOTALL)


class MalformedJson(Exception):
    """JSON does not have the expected format; `path` is a path such as `.schema.fields[0]`."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")

    @property
    def is_truncated(self) -> bool:
        """Whether the end of the JSON is missing."""
        return "truncated" in self.problem


class HashedEntry(NamedTuple):
    """The JSON of an entry without its hash, and the hash."""

    body: bytes
    content_hash: str | None


# Data types are the only values that msgspec cannot encode; they are written as text.
_encoder: Final = msgspec.json.Encoder(enc_hook=attrgetter("text"), order="deterministic")
_types: Final[dict[str, DataType]] = {}

canonical = _encoder.encode


def _decode_type(type: type[Any], value: Any) -> Any:
    try:
        return _types[value]
    except (KeyError, TypeError):
        if type is not DataType or not isinstance(value, str):
            raise ValueError(f"Expected the text of a type, got {value!r}") from None
    try:
        parsed = parse_type(value)
    except MisuseError as problem:
        reason = problem.problem if isinstance(problem, SchemaSyntaxError) else problem
        raise ValueError(f"'{value}' is not a type: {reason}") from None
    if len(_types) < _MAX_CACHED_TYPES:
        _types[value] = parsed
    return parsed


_decoders: Final = {
    kind.plural: msgspec.json.Decoder(kind.type, dec_hook=_decode_type) for kind in KINDS
}
_headers: Final = msgspec.json.Decoder(SnapshotHeader)


def digest(body: bytes) -> str:
    """The content hash of canonical JSON."""
    return hashlib.sha256(body).hexdigest()


def add_hash(body: bytes, content_hash: str, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """Add the hash as the last key, and text before and after the entry."""
    return b'%b%b,"content_hash":"%b"}%b' % (before, body[:-1], content_hash.encode(), after)


def split_hash(stored: bytes) -> HashedEntry:
    """Split an entry into its JSON and its hash, whatever the order of its keys."""
    if stored[
        -_HASH_SUFFIX_LENGTH : -_HASH_SUFFIX_LENGTH + len(_HASH_START)
    ] == _HASH_START and stored.endswith(b'"}'):
        return HashedEntry(
            stored[:-_HASH_SUFFIX_LENGTH] + b"}",
            stored[-_HASH_LENGTH - 2 : -2].decode("ascii", "replace"),
        )
    if HASH_KEY.encode() not in stored:
        return HashedEntry(stored, None)
    refuse_duplicate_keys(stored)
    plain = decode_plain(stored)
    if not isinstance(plain, dict) or HASH_KEY not in plain:
        return HashedEntry(stored, None)
    content_hash = plain.pop(HASH_KEY)
    if not isinstance(content_hash, str):
        raise MalformedJson(f".{HASH_KEY}", f"Expected `str`, got {content_hash!r}")
    return HashedEntry(msgspec.json.encode(plain), content_hash)


def has_valid_hash(stored: HashedEntry, canonical_json: Callable[[], bytes]) -> bool:
    """Whether an entry matches its hash, whatever the layout of its JSON; true without a hash.

    Raises MalformedJson for duplicate keys. `canonical_json` returns the canonical JSON of the
    entry in the format version of its file.
    """
    if stored.content_hash is not None and digest(stored.body) == stored.content_hash:
        return True
    refuse_duplicate_keys(stored.body)
    return stored.content_hash is None or stored.content_hash == digest(canonical_json())


def decode_entry(kind: EntryKind, body: bytes) -> Any:
    try:
        return _require_time_zones(kind.type, _decoders[kind.plural].decode(body))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _with_full_path(body, _malformed(problem)) from None


def _with_full_path(body: bytes, problem: MalformedJson) -> MalformedJson:
    """The problem, with a path that contains all keys; msgspec omits keys of maps."""
    if UNNAMED_KEY not in problem.path:
        return problem
    return MalformedJson(
        locate_path(decode_plain(body), problem.path, problem.problem), problem.problem
    )


def decode_header(data: bytes) -> SnapshotHeader:
    try:
        return _require_time_zones(SnapshotHeader, _headers.decode(data))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _malformed(problem) from None


def refuse_duplicate_keys(data: bytes, *, levels: int | None = None) -> None:
    """Raise MalformedJson for a duplicate key in the first `levels` levels, by default in all."""
    try:
        path = find_duplicate_key(data, levels=levels)
    except (ValueError, RecursionError) as problem:
        raise _malformed(problem) from None
    if path is not None:
        raise MalformedJson(path, "The key is duplicated")


def _require_time_zones(type: type[Value], value: Value) -> Value:
    if (path := find_naive_time(type, value)) is not None:
        raise MalformedJson(path, "Expected a time with its zone, such as 2024-01-15T10:30:00Z")
    return value


def decode_plain(data: bytes | msgspec.Raw) -> Any:
    """Decode JSON to dictionaries, lists and scalars."""
    return decode_json(data, Any)


def decode_json(data: bytes | msgspec.Raw, type: Any) -> Any:
    """Decode JSON to a type that does not check its values."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _malformed(problem) from None


def key_of(kind: EntryKind, body: bytes) -> str:
    """The URN or name of an entry; if its JSON is canonical, it is not decoded."""
    start = _KEY_STARTS[kind.key]
    if body.startswith(start):
        text = body[len(start) : body.find(b'"', len(start))]
        if b"\\" not in text:
            return text.decode("utf-8", "replace")
    plain = decode_plain(body)
    if not isinstance(plain, dict) or not isinstance(plain.get(kind.key), str):
        raise MalformedJson("", f"Object missing required field `{kind.key}`")
    return str(plain[kind.key])


def _malformed(problem: Exception) -> MalformedJson:
    if isinstance(problem, RecursionError):
        return MalformedJson("", "it nests too deeply")
    text = str(problem)
    position = _ERROR_PATH.search(text)
    return (
        MalformedJson(position["path"], text[: position.start()])
        if position
        else MalformedJson("", text)
    )


UNNAMED_KEY: Final = "[...]"
_STEP: Final = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<unnamed>\[\.\.\.\])")
_ACTUAL_TYPE: Final = re.compile(r"got `(\w+)`")
_MISSING_FIELD: Final = re.compile(r"missing required field `(\w+)`")
_JSON_TYPES: Final = {
    str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip


def locate_path(plain: Any, path: str, problem: str) -> str:
    """The path with the keys that replace `[...]`, if they can be determined."""
    steps = list(_STEP.finditer(path))
    return next(_paths(plain, steps, "", _value_filter(problem)), path)


def _value_filter(problem: str) -> Callable[[Any], bool]:
    if got := _ACTUAL_TYPE.search(problem):
        return lambda value: _JSON_TYPES.get(type(value)) == got[1]
    if missing := _MISSING_FIELD.search(problem):
        return lambda value: isinstance(value, dict) and missing[1] not in value
    return lambda _: True


def _paths(
    value: Any, steps: list[re.Match[str]], path: str, is_match: Callable[[Any], bool]
) -> Iterator[str]:
    """Yield the paths that match the steps and lead to a matching value."""
    if not steps:
        if is_match(value):
            yield path
        return
    step, *rest = steps
    if step["unnamed"] and isinstance(value, dict):
        for key, child in value.items():
            yield from _paths(child, rest, f"{path}.{key}", is_match)
    elif step["key"] and isinstance(value, dict) and step["key"] in value:
        yield from _paths(value[step["key"]], rest, path + step[0], is_match)
    elif step["index"] and isinstance(value, list) and int(step["index"]) < len(value):
        yield from _paths(value[int(step["index"])], rest, path + step[0], is_match)


class _DuplicateKeys(dict[str, Any]):
    """An object with a duplicate key."""

    key: str


def find_duplicate_key(data: bytes, *, levels: int | None = None) -> str | None:
    """The path to the first duplicate key in the first `levels` levels, by default in all."""
    # Do not convert numbers: parsing long numbers is slow, and their values do not matter here.
    plain = json.loads(data, object_pairs_hook=_object, parse_int=str, parse_float=str)
    return next(_duplicate_paths(plain, "", levels), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    duplicate = _DuplicateKeys(plain)
    names = [name for name, _ in pairs]
    duplicate.key = next(name for name in names if names.count(name) > 1)
    return duplicate


def _duplicate_paths(plain: Any, path: str, levels: int | None) -> Iterator[str]:
    if levels == 0:
        return
    inner_levels = None if levels is None else levels - 1
    if isinstance(plain, _DuplicateKeys):
        yield f"{path}.{plain.key}"
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from _duplicate_paths(value, f"{path}.{key}", inner_levels)
    elif isinstance(plain, list):
        for index, value in enumerate(plain):
            yield from _duplicate_paths(value, f"{path}[{index}]", inner_levels)


# Returns the path to the first time without a zone inside a value.
_TimeFinder: TypeAlias = Callable[[Any], str | None]


def find_naive_time(type: Any, value: object) -> str | None:
    """The path to the first time without a zone in a value of this type."""
    find = _finder_of_type(type)
    return None if find is None else find(value)


@cache
def _finder_of_type(type: Any) -> _TimeFinder | None:
    return _time_finder(msgspec.inspect.type_info(type))


def _time_finder(shape: msgspec.inspect.Type) -> _TimeFinder | None:
    """A function that finds times without a zone; None if the type cannot contain times."""
    match shape:
        case msgspec.inspect.DateTimeType():
            return _find_naive
        case msgspec.inspect.StructType():
            return _find_in_fields(shape.fields)
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return _find_in_items(_time_finder(shape.item_type))
        case msgspec.inspect.DictType():
            return _find_in_values(_time_finder(shape.value_type))
        case msgspec.inspect.UnionType():
            finders = [find for option in shape.types if (find := _time_finder(option)) is not None]
            assert len(finders) < 2, "ambiguous union"
            return finders[0] if finders else None
        case _:
            return None


def _find_naive(value: Any) -> str | None:
    return "" if value.tzinfo is None else None


def _find_in_fields(fields: Iterable[msgspec.inspect.Field]) -> _TimeFinder | None:
    finders = [
        (attrgetter(field.name), f".{field.encode_name}", find)
        for field in fields
        if (find := _time_finder(field.type)) is not None
    ]

    def find_path(value: Any) -> str | None:
        for get_field, name, find in finders:
            if (field_value := get_field(value)) and (path := find(field_value)) is not None:
                return name + path
        return None

    return find_path if finders else None


def _find_in_items(find: _TimeFinder | None) -> _TimeFinder | None:
    if find is None:
        return None

    def find_path(value: Any) -> str | None:
        for index, item in enumerate(value):
            if (path := find(item)) is not None:
                return f"[{index}]{path}"
        return None

    return find_path


def _find_in_values(find: _TimeFinder | None) -> _TimeFinder | None:
    if find is None:
        return None

    def find_path(value: Any) -> str | None:
        for key, item in value.items():
            if (path := find(item)) is not None:
                return f".{key}{path}"
        return None

    return find_path
