"""Parses a cost model file in JSON or YAML and reports invalid entries with their position."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec
import yaml

from lumos.errors import MisuseError, did_you_mean


class InvalidModel(MisuseError):
    """A cost model that cannot be computed."""

    def __init__(self, file: Path, reason: str, *, line: int | None = None) -> None:
        self.file = file
        self.line = line
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")


MAX_YAML_BYTES: Final = 50 * 1024 * 1024
MAX_DEPTH: Final = 50
# The maximum number of values after expanding aliases, as in "billion laughs" attacks.
MAX_NODES: Final = 3_000_000
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_encoder = msgspec.json.Encoder(decimal_format="number")
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def yaml_to_json(file: Path, text: str) -> bytes:
    """Convert a YAML text with one document to JSON; raises InvalidModel with the line."""
    if len(text) > MAX_YAML_BYTES:
        megabytes = MAX_YAML_BYTES // 1024**2
        raise InvalidModel(file, f"More than {megabytes} MB of YAML. Write the model as JSON.")
    try:
        _check_size(file, text)
        return _encoder.encode(yaml.load(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InvalidModel(file, f"This is not valid YAML: {error.problem}.", line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidModel(file, f"This is not valid YAML: {error.reason}.", line=line) from None


def _check_size(file: Path, text: str) -> None:
    """Raise if the text is nested too deep or expands to too many values, without loading it."""
    sizes: dict[str, int] = {}
    open_anchors: list[tuple[str | None, int]] = []
    nodes = 0
    for event in yaml.parse(text, Loader=_Parser):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_anchors):
                reason = f"The anchor '&{event.anchor}' contains itself."
                raise InvalidModel(file, reason, line=line)
            # The loader rejects unknown aliases.
            nodes += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            nodes += 1
            open_anchors.append((event.anchor, nodes - 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_anchors.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
        if len(open_anchors) > MAX_DEPTH:
            raise InvalidModel(
                file, f"The model is nested deeper than {MAX_DEPTH} levels.", line=line
            )
        if nodes > MAX_NODES:
            reason = f"The model has more than {MAX_NODES:,} values after expanding aliases."
            raise InvalidModel(file, f"{reason} Write it as JSON.", line=line)


class _Loader(_Parser):  # type: ignore[misc]
    """A loader that only constructs plain values and rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                reason = f"the key '{key.value}' is listed twice"
                raise yaml.constructor.ConstructorError(None, None, reason, key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]

    def integer(self, node: yaml.ScalarNode) -> Decimal:
        """Convert to an exact decimal; reject other notations, since YAML 1.1 reads 010 as 8."""
        if not _INTEGER.fullmatch(node.value):
            reason = f"invalid number '{node.value}', write it as 12"
            raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)
        return self.number(node)

    def number(self, node: yaml.ScalarNode) -> Decimal:
        """Convert to an exact decimal; raises ConstructorError unless it is finite."""
        text = node.value.replace("_", "")
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal("nan")
        if not value.is_finite():
            reason = f"invalid number '{node.value}', write it as 12.5"
            raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)
        return value


_Loader.add_constructor(f"{_TAG_PREFIX}int", _Loader.integer)
_Loader.add_constructor(f"{_TAG_PREFIX}float", _Loader.number)
_Loader.add_constructor(f"{_TAG_PREFIX}timestamp", _Loader.construct_yaml_str)


MAX_BYTES: Final = 1024 * 1024 * 1024
_BATCH_SIZE: Final = 50_000
_KEY_END: Final = b'":'
_SPACED_COLONS: Final = (b" :", b"\t:", b"\n:", b"\r:")
_YAML_EXTENSIONS: Final = frozenset({".yaml", ".yml"})
_ERROR_PATTERN: Final = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_ERROR_AT_BYTE: Final = re.compile(r"^JSON is malformed: (?P<reason>.*) \(byte (?P<byte>\d+)\)$")
# Type names of the decoder and their descriptions for users.
_TYPE_NAMES: Final = {
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


class ModelNode(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A dataset or job in the file."""

    urn: str
    kind: Literal["dataset", "job"] = "dataset"
    costs: dict[str, Decimal] | None = None
    live: bool | None = None
    team: str | None = None
    currency: str | None = None


class ModelEdge(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An edge in the file."""

    upstream: str = msgspec.field(name="from")
    downstream: str = msgspec.field(name="to")
    share: float | None = None
    shares: dict[str, float] | None = None
    bytes: float | None = None
    last_read: datetime | None = None

    def read_at(self) -> float:
        """The last read in seconds since 1970, UTC by default; nan if unknown."""
        moment = self.last_read
        if moment is None:
            return float("nan")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class _StrictModel(msgspec.Struct, forbid_unknown_fields=True):
    datasets: list[msgspec.Raw] | None = None
    edges: list[msgspec.Raw] | None = None
    method: str | None = None
    currency: str | None = None


class _LenientModel(_StrictModel, forbid_unknown_fields=False):
    pass


class _LenientNode(ModelNode, frozen=True, forbid_unknown_fields=False):
    pass


class _LenientEdge(ModelEdge, frozen=True, forbid_unknown_fields=False):
    pass


class ModelFile:
    """The entries of a file, decoded in batches to limit memory."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.remarks: list[str] = []
        content = _read_as_json(file)
        model = self._decode(content, _StrictModel, _LenientModel)
        self._check_duplicates(_outer_mapping(content), "the file")
        self.method: str | None = model.method
        self.currency: str | None = model.currency
        self._datasets: list[msgspec.Raw] = model.datasets or []
        self._edges: list[msgspec.Raw] = model.edges or []

    def nodes(self) -> Iterator[list[ModelNode]]:
        """The datasets and jobs in batches."""
        for start, batch in _batches(self._datasets):
            self._check_keys(batch, "datasets", start)
            yield self._decode(
                batch, list[ModelNode], list[_LenientNode], name="datasets", start=start
            )

    def edges(self) -> Iterator[list[ModelEdge]]:
        """The edges in batches."""
        for start, batch in _batches(self._edges):
            self._check_keys(batch, "edges", start)
            yield self._decode(
                batch, list[ModelEdge], list[_LenientEdge], name="edges", start=start
            )

    def invalid(self, reason: str) -> InvalidModel:
        """The error for an invalid entry of this file."""
        return InvalidModel(self.file, reason)

    def _check_keys(self, batch: bytes, name: str, start: int) -> None:
        """Raise if a mapping has a duplicate key, since all but the last value would be lost.

        Comparing the number of keys before and after re-encoding is the fastest check.
        """
        try:
            encoded = msgspec.json.encode(msgspec.json.decode(batch))
        except msgspec.DecodeError:
            return
        has_spaces = any(colon in batch for colon in _SPACED_COLONS)
        if not has_spaces and encoded.count(_KEY_END) == batch.count(_KEY_END):
            return
        raw = self._datasets if name == "datasets" else self._edges
        for number in range(start, min(start + _BATCH_SIZE, len(raw))):
            self._check_duplicates(bytes(raw[number]), f"{name}[{number}]")

    def _check_duplicates(self, content: bytes, position: str) -> None:
        def check_pairs(pairs: list[tuple[str, object]]) -> None:
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise self.invalid(f"{position}: the key '{key}' is listed twice. Keep one.")
                seen.add(key)

        json.loads(content, object_pairs_hook=check_pairs, parse_int=str, parse_float=str)

    def _decode(
        self, content: bytes, kind: Any, lenient: Any, *, name: str = "", start: int = 0
    ) -> Any:
        """Decode a value; unknown keys are ignored with a remark."""
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.ValidationError as error:
            if "unknown field" not in str(error):
                raise self.invalid(_error_message(error, name, start)) from None
        try:
            decoded = msgspec.json.decode(content, type=lenient)
        except msgspec.ValidationError as error:
            raise self.invalid(_error_message(error, name, start)) from None
        self._report_unknown_keys(msgspec.json.decode(content), lenient, name)
        return decoded

    def _report_unknown_keys(self, decoded: Any, kind: Any, name: str) -> None:
        entries = decoded if name else [decoded]
        fields = msgspec.structs.fields(get_args(kind)[0] if name else kind)
        known = [field.encode_name for field in fields]
        used = {key for entry in entries for key in entry}
        position = f" of {name}" if name else ""
        for key in sorted(used.difference(known)):
            hint = did_you_mean(key, known) or f" Known: {', '.join(known)}."
            remark = f"Unknown key '{key}'{position} is ignored.{hint}"
            if remark not in self.remarks:
                self.remarks.append(remark)


def _outer_mapping(content: bytes) -> bytes:
    """The outermost mapping without the content of its lists and mappings."""
    for raw in msgspec.json.decode(content, type=dict[str, msgspec.Raw]).values():
        if memoryview(raw)[0] in b"[{":
            content = content.replace(bytes(raw), b"null", 1)
    return content


def _batches(raw: list[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(raw), _BATCH_SIZE):
        yield start, b"[%s]" % b",".join(map(bytes, raw[start : start + _BATCH_SIZE]))


def _error_message(error: msgspec.ValidationError, name: str, start: int) -> str:
    """The error of the decoder as a message with the position in the file."""
    match = _ERROR_PATTERN.match(str(error))
    assert match is not None
    reason, path = match["reason"], match["path"] or ""
    number = re.match(r"\[(\d+)\]", path)
    if name and number is not None:
        path = f"{name}[{start + int(number[1])}]{path[number.end() :]}"
    position = path.replace("[...]", "").removeprefix(".") or "the file"
    text = re.sub(r"`([^`]*)`", lambda quoted: _describe_types(quoted[1]), reason)
    return f"{position}: {text}. See: lumos cost model --help"


def _describe_types(type_names: str) -> str:
    names = [each for each in type_names.split(" | ") if each != "null"] or ["null"]
    return " or ".join(_TYPE_NAMES.get(each, f"'{each}'") for each in names)


def _read_as_json(file: Path) -> bytes:
    """The content as JSON, converted from YAML if necessary."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidModel(
            file, "There is no such file. Name one that exists: lumos cost model FILE"
        ) from None
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
    if content[:1000].lstrip()[:1] not in (b"{", b"[") or file.suffix.lower() in _YAML_EXTENSIONS:
        return yaml_to_json(file, text or content.decode())
    _check_json(file, content)
    return content


def _check_json(file: Path, content: bytes) -> None:
    """Raise InvalidModel with the line if the content is not JSON."""
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        match = _ERROR_AT_BYTE.match(str(error))
        # Truncated JSON is reported at its end.
        end = int(match["byte"]) if match else len(content.rstrip())
        line = content.count(b"\n", 0, end) + 1
        reason = match["reason"] if match else "it ends too early"
        raise InvalidModel(file, f"This is not valid JSON: {reason}.", line=line) from None
    except RecursionError:
        raise InvalidModel(file, "The model is nested too deep.") from None
