"""Entries and headers as canonical JSON, and the content hashes that seal them.

Canonical JSON has no spaces, its keys in the order of the format and those of free maps sorted,
and leaves out what is not known. The hash of an entry is SHA-256 of that, and stands as its last
key, `content_hash`.
"""

import hashlib
import re
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from lumos.errors import MisuseError
from lumos.model.types import DataType, SchemaSyntaxError, parse_type
from lumos.snapshots.format.document import KINDS, Header, Kind
from lumos.snapshots.format.positions import UNNAMED, located
from lumos.snapshots.format.repetition import repeated_key
from lumos.snapshots.format.zones import without_zone

Value = TypeVar("Value")

HASH_KEY: Final = "content_hash"
_SEAL: Final = f',"{HASH_KEY}":"'.encode()
_DIGITS: Final = 64
_TAIL: Final = len(_SEAL) + _DIGITS + len(b'"}')
_KEY_STARTS: Final = {kind.key: f'{{"{kind.key}":"'.encode() for kind in KINDS}
_KNOWN_TYPES: Final = 65_536
_AT: Final = re.compile(r" - at `(?P<root>key in )?\$(?P<path>.*)`\Z", re.DOTALL)


class Malformed(Exception):
    """JSON that is not what the format asks for; `path` is like `.schema.fields[0]`."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")

    @property
    def cut_off(self) -> bool:
        """Whether the end is missing."""
        return "truncated" in self.problem


class Sealed(NamedTuple):
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
_headers: Final = msgspec.json.Decoder(Header)


def digest(body: bytes) -> str:
    """The content hash of canonical JSON."""
    return hashlib.sha256(body).hexdigest()


def seal(body: bytes, content_hash: str, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """The JSON of an entry with its hash as the last key, and what is to stand around it."""
    return b'%b%b,"content_hash":"%b"}%b' % (before, body[:-1], content_hash.encode(), after)


def unseal(stored: bytes) -> Sealed:
    """An entry and its hash apart, wherever among its keys the hash stands."""
    if stored[-_TAIL : -_TAIL + len(_SEAL)] == _SEAL and stored.endswith(b'"}'):
        return Sealed(stored[:-_TAIL] + b"}", stored[-_DIGITS - 2 : -2].decode("ascii", "replace"))
    if HASH_KEY.encode() not in stored:
        return Sealed(stored, None)
    refuse_repeated(stored)
    plain = plain_json(stored)
    if not isinstance(plain, dict) or HASH_KEY not in plain:
        return Sealed(stored, None)
    content_hash = plain.pop(HASH_KEY)
    if not isinstance(content_hash, str):
        raise Malformed(f".{HASH_KEY}", f"Expected `str`, got {content_hash!r}")
    return Sealed(msgspec.json.encode(plain), content_hash)


def matches(sealed: Sealed, value: object) -> bool:
    """Whether an entry has the content that its hash says, however its JSON is laid out.

    One without a hash has. A key that stands twice is no matter of layout.
    """
    if sealed.content_hash is not None and digest(sealed.body) == sealed.content_hash:
        return True
    refuse_repeated(sealed.body)
    return sealed.content_hash in (None, digest(canonical(value)))


def entry_of(kind: Kind, body: bytes) -> Any:
    """The entry of that kind."""
    try:
        return _zoned(kind.type, _decoders[kind.plural].decode(body))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _found_in(body, _malformed(problem)) from None


def _found_in(body: bytes, problem: Malformed) -> Malformed:
    """A problem with all keys in its path."""
    if UNNAMED not in problem.path:
        return problem
    return Malformed(located(plain_json(body), problem.path, problem.problem), problem.problem)


def header_of(data: bytes) -> Header:
    """The header."""
    try:
        return _zoned(Header, _headers.decode(data))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _malformed(problem) from None


def refuse_repeated(data: bytes, *, levels: int | None = None) -> None:
    """Fails where a key stands twice in an object, in so many levels of JSON or in all."""
    try:
        path = repeated_key(data, levels=levels)
    except (ValueError, RecursionError) as problem:
        raise _malformed(problem) from None
    if path is not None:
        raise Malformed(path, "The key stands here a second time")


def _zoned(type: type[Value], value: Value) -> Value:
    if (path := without_zone(type, value)) is not None:
        raise Malformed(path, "Expected a time with its zone, such as 2024-01-15T10:30:00Z")
    return value


def plain_json(data: bytes | msgspec.Raw) -> Any:
    """JSON as dictionaries, lists and scalars."""
    return decoded(data, Any)


def decoded(data: bytes | msgspec.Raw, type: Any) -> Any:
    """JSON as values of a type that says only how it is laid out."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise _malformed(problem) from None


def key_of(kind: Kind, body: bytes) -> str:
    """The URN or name of an entry, without decoding the rest where its JSON is canonical."""
    start = _KEY_STARTS[kind.key]
    if body.startswith(start):
        text = body[len(start) : body.find(b'"', len(start))]
        if b"\\" not in text:
            return text.decode("utf-8", "replace")
    plain = plain_json(body)
    if not isinstance(plain, dict) or not isinstance(plain.get(kind.key), str):
        raise Malformed("", f"Object missing required field `{kind.key}`")
    return str(plain[kind.key])


def _malformed(problem: Exception) -> Malformed:
    if isinstance(problem, RecursionError):
        return Malformed("", "it nests too deeply")
    text = str(problem)
    at = _AT.search(text)
    return Malformed(at["path"], text[: at.start()]) if at else Malformed("", text)
