"""Entries and headers as canonical JSON, and the content hashes that seal them.

Canonical JSON has no spaces, its keys in the order of the format and those of free maps sorted,
and leaves out what is not known. The hash of an entry is SHA-256 of that, and stands as its last
key, `content_hash`.
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
_SEAL: Final = f',"{HASH_KEY}":"'.encode()
_DIGITS: Final = 64
_TAIL: Final = len(_SEAL) + _DIGITS + len(b'"}')
_KEY_STARTS: Final = {kind.key: f'{{"{kind.key}":"'.encode() for kind in KINDS}
_KNOWN_TYPES: Final = 65_536
_AT: Final = re.compile(r" - at `(?P<root>key in )?\$(?P<path>.*)`\Z", re.DOTALL)


class MalformedJson(Exception):
    """JSON that is not what the format asks for; `path` is like `.schema.fields[0]`."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")

    @property
    def cut_off(self) -> bool:
        """Whether the end is missing."""
        return "truncated" in self.problem


class SealedEntry(NamedTuple):
    """The JSON of an entry without its hash, and the hash that stands in it."""

    body: bytes
    content_hash: str | None


# The only values that msgspec does not know are types, and those stand as their text.
_encoder: Final = msgspec.json.Encoder(enc_hook=attrgetter("text"), order="deterministic")
_types: Final[dict[str, DataType]] = {}

canonical = _encoder.encode


def _from_wire(type: type[Any], value: Any) -> Any:
    try:
        return _types[value]
    except (KeyError, TypeError):
        if type is not DataType or not isinstance(value, str):
            raise ValueError(f"Expected the text of a type, got {value!r}") from None
    try:
        parsed = parse_type(value)
    except MisuseError as problem:
        reason = problem.problem if isinstance(problem, SchemaSyntaxError) else problem
        raise ValueError(f"'{value}' is no type: {reason}") from None
    if len(_types) < _KNOWN_TYPES:
        _types[value] = parsed
    return parsed


_decoders: Final = {
    kind.plural: msgspec.json.Decoder(kind.type, dec_hook=_from_wire) for kind in KINDS
}
_headers: Final = msgspec.json.Decoder(SnapshotHeader)


def digest(body: bytes) -> str:
    """The content hash of canonical JSON."""
    return hashlib.sha256(body).hexdigest()


def seal(body: bytes, content_hash: str, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """The JSON of an entry with its hash as the last key, and what is to stand around it."""
    return b'%b%b,"content_hash":"%b"}%b' % (before, body[:-1], content_hash.encode(), after)


def unseal(stored: bytes) -> SealedEntry:
    """An entry and its hash apart, wherever among its keys the hash stands."""
    if stored[-_TAIL : -_TAIL + len(_SEAL)] == _SEAL and stored.endswith(b'"}'):
        return SealedEntry(
            stored[:-_TAIL] + b"}", stored[-_DIGITS - 2 : -2].decode("ascii", "replace")
        )
    if HASH_KEY.encode() not in stored:
        return SealedEntry(stored, None)
    refuse_repeated(stored)
    plain = decode_plain(stored)
    if not isinstance(plain, dict) or HASH_KEY not in plain:
        return SealedEntry(stored, None)
    content_hash = plain.pop(HASH_KEY)
    if not isinstance(content_hash, str):
        raise MalformedJson(f".{HASH_KEY}", f"Expected `str`, got {content_hash!r}")
    return SealedEntry(msgspec.json.encode(plain), content_hash)


def matches(sealed: SealedEntry, written: Callable[[], bytes]) -> bool:
    """Whether an entry has the content that its hash says, however its JSON is laid out.

    One without a hash has. A key that stands twice is no matter of layout. `written` gives the
    canonical JSON of the entry in the version of its file.
    """
    if sealed.content_hash is not None and digest(sealed.body) == sealed.content_hash:
        return True
    refuse_repeated(sealed.body)
    return sealed.content_hash is None or sealed.content_hash == digest(written())


def entry_of(kind: EntryKind, body: bytes) -> Any:
    """The entry of that kind."""
    try:
        return _zoned(kind.type, _decoders[kind.plural].decode(body))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _found_in(body, _malformed(problem)) from None


def _found_in(body: bytes, problem: MalformedJson) -> MalformedJson:
    """A problem with all keys in its path."""
    if UNNAMED not in problem.path:
        return problem
    return MalformedJson(
        locate_path(decode_plain(body), problem.path, problem.problem), problem.problem
    )


def header_of(data: bytes) -> SnapshotHeader:
    """The header."""
    try:
        return _zoned(SnapshotHeader, _headers.decode(data))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _malformed(problem) from None


def refuse_repeated(data: bytes, *, levels: int | None = None) -> None:
    """Fails where a key stands twice in an object, in so many levels of JSON or in all."""
    try:
        path = repeated_key(data, levels=levels)
    except (ValueError, RecursionError) as problem:
        raise _malformed(problem) from None
    if path is not None:
        raise MalformedJson(path, "The key is duplicated")


def _zoned(type: type[Value], value: Value) -> Value:
    if (path := find_naive_time(type, value)) is not None:
        raise MalformedJson(path, "Expected a time with its zone, such as 2024-01-15T10:30:00Z")
    return value


def decode_plain(data: bytes | msgspec.Raw) -> Any:
    """JSON as dictionaries, lists and scalars."""
    return decode_json(data, Any)


def decode_json(data: bytes | msgspec.Raw, type: Any) -> Any:
    """JSON as values of a type that says only how it is laid out."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _malformed(problem) from None


def key_of(kind: EntryKind, body: bytes) -> str:
    """The URN or name of an entry, without decoding the rest where its JSON is canonical."""
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
    at = _AT.search(text)
    return MalformedJson(at["path"], text[: at.start()]) if at else MalformedJson("", text)


UNNAMED: Final = "[...]"
_STEP: Final = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<unnamed>\[\.\.\.\])")
_GOT: Final = re.compile(r"got `(\w+)`")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")
_NAMES: Final = {
    str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip


def locate_path(plain: Any, path: str, problem: str) -> str:
    """The path with the keys that it does not name, as far as they can be told."""
    steps = list(_STEP.finditer(path))
    return next(_paths(plain, steps, "", _is_it(problem)), path)


def _is_it(problem: str) -> Callable[[Any], bool]:
    if got := _GOT.search(problem):
        return lambda value: _NAMES.get(type(value)) == got[1]
    if missing := _MISSING.search(problem):
        return lambda value: isinstance(value, dict) and missing[1] not in value
    return lambda _: True


def _paths(
    value: Any, steps: list[re.Match[str]], path: str, is_it: Callable[[Any], bool]
) -> Iterator[str]:
    """All paths that the steps can mean and that lead to such a value."""
    if not steps:
        if is_it(value):
            yield path
        return
    step, *rest = steps
    if step["unnamed"] and isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, rest, f"{path}.{key}", is_it)
    elif step["key"] and isinstance(value, dict) and step["key"] in value:
        yield from _paths(value[step["key"]], rest, path + step[0], is_it)
    elif step["index"] and isinstance(value, list) and int(step["index"]) < len(value):
        yield from _paths(value[int(step["index"])], rest, path + step[0], is_it)


class _Repeated(dict[str, Any]):
    """An object, and the key that stands in it twice."""

    key: str


def repeated_key(data: bytes, *, levels: int | None = None) -> str | None:
    """The path to the first key that stands twice, in so many levels of JSON or in all."""
    # Numbers stay text: how long they are says nothing here.
    plain = json.loads(data, object_pairs_hook=_object, parse_int=str, parse_float=str)
    return next(_repetition_paths(plain, "", levels), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    repeated = _Repeated(plain)
    names = [name for name, _ in pairs]
    repeated.key = next(name for name in names if names.count(name) > 1)
    return repeated


def _repetition_paths(plain: Any, path: str, levels: int | None) -> Iterator[str]:
    if levels == 0:
        return
    below = None if levels is None else levels - 1
    if isinstance(plain, _Repeated):
        yield f"{path}.{plain.key}"
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from _repetition_paths(value, f"{path}.{key}", below)
    elif isinstance(plain, list):
        for index, value in enumerate(plain):
            yield from _repetition_paths(value, f"{path}[{index}]", below)


# Gives the path to the first time without a zone inside of a value.
_Look: TypeAlias = Callable[[Any], str | None]


def find_naive_time(type: Any, value: object) -> str | None:
    """The path to a time in a value of that type that does not say in which zone it is."""
    look = _of_type(type)
    return None if look is None else look(value)


@cache
def _of_type(type: Any) -> _Look | None:
    return _look(msgspec.inspect.type_info(type))


def _look(shape: msgspec.inspect.Type) -> _Look | None:
    """How to look through values of a shape; nothing where they cannot hold a time."""
    match shape:
        case msgspec.inspect.DateTimeType():
            return _at_time
        case msgspec.inspect.StructType():
            return _in_fields(shape.fields)
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return _in_items(_look(shape.item_type))
        case msgspec.inspect.DictType():
            return _in_values(_look(shape.value_type))
        case msgspec.inspect.UnionType():
            looks = [look for option in shape.types if (look := _look(option)) is not None]
            assert len(looks) < 2, "nobody can tell which of several a value is"
            return looks[0] if looks else None
        case _:
            return None


def _at_time(value: Any) -> str | None:
    return "" if value.tzinfo is None else None


def _in_fields(fields: Iterable[msgspec.inspect.Field]) -> _Look | None:
    looks = [
        (attrgetter(field.name), f".{field.encode_name}", look)
        for field in fields
        if (look := _look(field.type)) is not None
    ]

    def look_through(value: Any) -> str | None:
        for part, name, look in looks:
            if (inside := part(value)) and (path := look(inside)) is not None:
                return name + path
        return None

    return look_through if looks else None


def _in_items(look: _Look | None) -> _Look | None:
    if look is None:
        return None

    def look_through(value: Any) -> str | None:
        for index, item in enumerate(value):
            if (path := look(item)) is not None:
                return f"[{index}]{path}"
        return None

    return look_through


def _in_values(look: _Look | None) -> _Look | None:
    if look is None:
        return None

    def look_through(value: Any) -> str | None:
        for key, item in value.items():
            if (path := look(item)) is not None:
                return f".{key}{path}"
        return None

    return look_through
