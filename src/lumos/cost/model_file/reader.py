"""Reads a file that holds a whole cost model, in JSON or YAML, by its content."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from lumos.cost.model_file.errors import InvalidModel
from lumos.cost.model_file.yaml import json_of_yaml
from lumos.errors import did_you_mean

MAX_BYTES: Final = 1024 * 1024 * 1024
_AT_ONCE: Final = 50_000
_AFTER_KEY: Final = b'":'
_BEFORE_COLONS: Final = (b" :", b"\t:", b"\n:", b"\r:")
_YAML_ENDINGS: Final = frozenset({".yaml", ".yml"})
_PLACE: Final = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_BYTE: Final = re.compile(r"^JSON is malformed: (?P<reason>.*) \(byte (?P<byte>\d+)\)$")
# The words of the decoder, as they are said to people.
_WORDS: Final = {
    "decimal": "a number such as 12.5",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "datetime": "a time such as 2024-01-31T12:00:00Z",
    "int": "a whole number",
    "null": "nothing",
}


class WrittenNode(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A dataset or job of the file."""

    urn: str
    kind: Literal["dataset", "job"] = "dataset"
    costs: dict[str, Decimal] | None = None
    live: bool | None = None
    team: str | None = None
    currency: str | None = None


class WrittenEdge(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Who reads whom, and what is known of that."""

    upstream: str = msgspec.field(name="from")
    downstream: str = msgspec.field(name="to")
    share: float | None = None
    shares: dict[str, float] | None = None
    bytes: float | None = None
    last_read: datetime | None = None

    def read_at(self) -> float:
        """Seconds since 1970, in UTC where no zone is given; nan where unknown."""
        moment = self.last_read
        if moment is None:
            return float("nan")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class _WrittenModel(msgspec.Struct, forbid_unknown_fields=True):
    datasets: list[msgspec.Raw] | None = None
    edges: list[msgspec.Raw] | None = None
    method: str | None = None
    currency: str | None = None


class _AnyModel(_WrittenModel, forbid_unknown_fields=False):
    pass


class _AnyNode(WrittenNode, frozen=True, forbid_unknown_fields=False):
    pass


class _AnyEdge(WrittenEdge, frozen=True, forbid_unknown_fields=False):
    pass


class ModelFile:
    """The entries of one file, decoded some at a time, so that a large one fits into memory."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.remarks: list[str] = []
        content = _content(file)
        written = self._decoded(content, _WrittenModel, _AnyModel)
        self._refuse_repeated(_outermost(content), "the file")
        self.method: str | None = written.method
        self.currency: str | None = written.currency
        self._datasets: list[msgspec.Raw] = written.datasets or []
        self._edges: list[msgspec.Raw] = written.edges or []

    def nodes(self) -> Iterator[list[WrittenNode]]:
        """The datasets and jobs, some at a time, as they stand in the file."""
        for start, batch in _batches(self._datasets):
            self._check_keys(batch, "datasets", start)
            yield self._decoded(
                batch, list[WrittenNode], list[_AnyNode], name="datasets", start=start
            )

    def edges(self) -> Iterator[list[WrittenEdge]]:
        """The edges, some at a time, as they stand in the file."""
        for start, batch in _batches(self._edges):
            self._check_keys(batch, "edges", start)
            yield self._decoded(batch, list[WrittenEdge], list[_AnyEdge], name="edges", start=start)

    def refusal(self, reason: str) -> InvalidModel:
        """What is wrong in this file, to be raised."""
        return InvalidModel(self.file, reason)

    def _check_keys(self, batch: bytes, name: str, start: int) -> None:
        """Raises where a key stands twice in a mapping, for all but the last would get lost.

        As many keys as there are when each counts once is most quickly counted by writing anew.
        """
        try:
            once = msgspec.json.encode(msgspec.json.decode(batch))
        except msgspec.DecodeError:
            return
        spaced = any(space in batch for space in _BEFORE_COLONS)
        if not spaced and once.count(_AFTER_KEY) == batch.count(_AFTER_KEY):
            return
        raw = self._datasets if name == "datasets" else self._edges
        for number in range(start, min(start + _AT_ONCE, len(raw))):
            self._refuse_repeated(bytes(raw[number]), f"{name}[{number}]")

    def _refuse_repeated(self, content: bytes, place: str) -> None:
        def once(pairs: list[tuple[str, object]]) -> None:
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise self.refusal(f"{place}: the key '{key}' is listed twice. Keep one.")
                seen.add(key)

        json.loads(content, object_pairs_hook=once, parse_int=str, parse_float=str)

    def _decoded(
        self, content: bytes, kind: Any, lenient: Any, *, name: str = "", start: int = 0
    ) -> Any:
        """What stands there; keys that are not known are told of, and mean nothing."""
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.ValidationError as error:
            if "unknown field" not in str(error):
                raise self.refusal(_sentence(error, name, start)) from None
        try:
            found = msgspec.json.decode(content, type=lenient)
        except msgspec.ValidationError as error:
            raise self.refusal(_sentence(error, name, start)) from None
        self._note_unknown(msgspec.json.decode(content), lenient, name)
        return found

    def _note_unknown(self, plain: Any, kind: Any, name: str) -> None:
        entries = plain if name else [plain]
        fields = msgspec.structs.fields(get_args(kind)[0] if name else kind)
        known = [field.encode_name for field in fields]
        used = {key for entry in entries for key in entry}
        place = f" of {name}" if name else ""
        for key in sorted(used.difference(known)):
            hint = did_you_mean(key, known) or f" Known: {', '.join(known)}."
            remark = f"Unknown key '{key}'{place} is ignored.{hint}"
            if remark not in self.remarks:
                self.remarks.append(remark)


def _outermost(content: bytes) -> bytes:
    """The mapping that all stands in, without what its lists and mappings hold."""
    for raw in msgspec.json.decode(content, type=dict[str, msgspec.Raw]).values():
        if memoryview(raw)[0] in b"[{":
            content = content.replace(bytes(raw), b"null", 1)
    return content


def _batches(raw: list[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(raw), _AT_ONCE):
        yield start, b"[%s]" % b",".join(map(bytes, raw[start : start + _AT_ONCE]))


def _sentence(error: msgspec.ValidationError, name: str, start: int) -> str:
    """What the decoder found, where it is in the file, in words for people."""
    found = _PLACE.match(str(error))
    assert found is not None
    reason, path = found["reason"], found["path"] or ""
    number = re.match(r"\[(\d+)\]", path)
    if name and number is not None:
        path = f"{name}[{start + int(number[1])}]{path[number.end() :]}"
    place = path.replace("[...]", "").removeprefix(".") or "the file"
    words = re.sub(r"`([^`]*)`", lambda quoted: _in_words(quoted[1]), reason)
    return f"{place}: {words}. See: lumos cost model --help"


def _in_words(type_names: str) -> str:
    names = [each for each in type_names.split(" | ") if each != "null"] or ["null"]
    return " or ".join(_WORDS.get(each, f"'{each}'") for each in names)


def _content(file: Path) -> bytes:
    """The file as JSON, whichever of the two it is written in."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidModel(file, "There is no such file.") from None
    except OSError as error:
        raise InvalidModel(file, f"The file cannot be read: {error.strerror}.") from None
    if len(content) > MAX_BYTES:
        raise InvalidModel(file, f"The model is larger than {MAX_BYTES // 1024**3} GB.")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = None if content.isascii() else content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidModel(file, "The model is not UTF-8 text.", line=line) from None
    if not content.strip():
        raise InvalidModel(file, "The file is empty. A model needs at least one dataset.")
    if content[:1000].lstrip()[:1] not in (b"{", b"[") or file.suffix.lower() in _YAML_ENDINGS:
        return json_of_yaml(file, text or content.decode())
    _check_json(file, content)
    return content


def _check_json(file: Path, content: bytes) -> None:
    """Raises for what is not JSON, with the line of it."""
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        found = _BYTE.match(str(error))
        # What is cut off is so at its end.
        end = int(found["byte"]) if found else len(content.rstrip())
        line = content.count(b"\n", 0, end) + 1
        reason = found["reason"] if found else "it ends too early"
        raise InvalidModel(file, f"This is not valid JSON: {reason}.", line=line) from None
    except RecursionError:
        raise InvalidModel(file, "The model nests too deep.") from None
