"""JSON: an array, lines, or consecutive objects; the schema is inferred from a bounded sample.

The schema is the union of all records in the sample, with keys in the order of appearance.

Text has the type STRING even if it looks like a date. Otherwise, a single text that is not a date
would change the type of a column from DATE to STRING, which would be a false alarm.
"""

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from lumos.formats.columns import distinct_names
from lumos.formats.inference import INT64_RANGE, MAX_MEMBERS, struct_or_map, type_of_integer, widen
from lumos.formats.interface import (
    Content,
    FileFacts,
    KnownSchema,
    Remark,
    Sample,
    TextFormat,
    UnreadableFile,
    check_width,
    inferred_schema,
)
from lumos.formats.text import first_character, text_of
from lumos.model.type_path import TOO_DEEP
from lumos.model.types import (
    BOOLEAN,
    FLOAT64,
    MAX_DEPTH,
    NULL,
    STRING,
    Array,
    DataType,
    Map,
)

_SCALARS: Final[dict[type, DataType]] = {bool: BOOLEAN, float: FLOAT64, str: STRING}
_NUMBERS: Final = {int, float}


def columns_of(records: Sequence[dict[str, Any]]) -> dict[str, Sequence[Any]]:
    """The values of each key in the records that have it."""
    keys = list(records[0])
    if all(list(record) == keys for record in records):
        columns = zip(*map(dict.values, records), strict=True)
        return dict(zip(keys, columns, strict=True))
    values_by_key: dict[str, list[Any]] = {}
    for record in records:
        for key, value in record.items():
            if key in values_by_key:
                values_by_key[key].append(value)
            else:
                values_by_key[key] = [value]
    return dict(values_by_key)


def type_of_values(values: Iterable[Any], depth: int = 1) -> DataType:
    """The narrowest type of all values."""
    values = values if isinstance(values, Sequence) else list(values)
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if len(kinds) == 1:
        [kind] = kinds
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind is int:
            return _type_of_integers(values)
        return _type_of_nested(values, kind, depth)
    if not kinds:
        return NULL
    if kinds == _NUMBERS:
        integers = [value for value in values if type(value) is int]
        return widen(_type_of_integers(integers), FLOAT64)
    return STRING


def _type_of_integers(values: Iterable[int | None]) -> DataType:
    type: DataType = NULL
    for value in values:
        if value is not None and (type is NULL or value not in INT64_RANGE):
            type = widen(type, type_of_integer(value))
    return type


def _type_of_nested(values: Sequence[Any], kind: type, depth: int) -> DataType:
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    present = [value for value in values if value is not None]
    if kind is list:
        return Array(type_of_values(chain.from_iterable(present), depth + 1))
    columns = columns_of(present)
    if len(columns) > MAX_MEMBERS:
        all_values = chain.from_iterable(map(dict.values, present))
        return Map(STRING, type_of_values(all_values, depth + 1))
    members = {key: type_of_values(column, depth + 1) for key, column in columns.items()}
    return struct_or_map({name_of(key): type for key, type in members.items()})


def name_of(key: str) -> str:
    """The key as a column name: lone surrogates are replaced, since they cannot be encoded."""
    return (
        key if key.isascii() else key.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_CLOSING: Final = {"{": "}", "[": "]"}
_MAX_INTEGER_LENGTH: Final = 100
# How often a truncated array is shortened to find the end of its last complete record.
_MAX_ATTEMPTS: Final = 3
_MAX_INVALID_RECORDS: Final = 100


class JsonRecords(NamedTuple):
    """The values of a text, how many are invalid, and the share of the text that was read."""

    values: list[Any]
    invalid: int = 0
    share: float = 1.0
    is_array: bool = False


_fast_decoder = msgspec.json.Decoder()
# Slower than msgspec, but can decode values one by one, and accepts NaN.
_decoder = json.JSONDecoder(
    # Python refuses to parse very long integers; all of them are out of range anyway.
    parse_int=lambda text: (
        int(text) if len(text) <= _MAX_INTEGER_LENGTH else 10**_MAX_INTEGER_LENGTH
    )
)


def decode_valid_records(data: bytes, *, whole: bool) -> JsonRecords | None:
    """The values in UTF-8 text; None if any of them is invalid.

    Unless `whole`, the text may end inside a value.
    """
    if whole:
        values = _decode_lines(data)
        if values is None:
            return None
        if len(values) == 1 and isinstance(values[0], list):
            return JsonRecords(values[0], is_array=True)
        return JsonRecords(values)
    if data.lstrip()[:1] == b"[":
        return _decode_truncated_array(data)
    for end in (data.rfind(b"\n") + 1, data.rfind(b"\n}") + 2):
        values = _decode_lines(data[:end])
        if values:
            return JsonRecords(values, share=end / len(data))
    return None


def _decode_truncated_array(data: bytes) -> JsonRecords | None:
    end = len(data)
    for _ in range(_MAX_ATTEMPTS):
        end = data.rfind(b"}", 0, end)
        if end < 0:
            return None
        values = _decode_lines(data[: end + 1] + b"]")
        if values is not None and len(values) == 1:
            return JsonRecords(values[0], share=end / len(data), is_array=True)
    return None


def _decode_lines(data: bytes) -> list[Any] | None:
    try:
        return _fast_decoder.decode_lines(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def decode_records(text: str, *, whole: bool) -> JsonRecords:
    """The values in a text that may be invalid in parts; may raise RecursionError."""
    start = _skip_space(text, 0)
    if text.startswith("[", start):
        array = _decode_elements(text, start + 1, whole=whole)
        if array is not None:
            return array
    return _decode_sequence(text, whole=whole)


def _decode_elements(text: str, position: int, *, whole: bool) -> JsonRecords | None:
    """The complete elements of an array; None if other text follows the array."""
    values: list[Any] = []
    end = position
    try:
        while True:
            position = _skip_space(text, position)
            if text.startswith("]", position):
                is_end = _skip_space(text, position + 1) == len(text)
                return JsonRecords(values, is_array=True) if is_end else None
            value, position = _decoder.raw_decode(text, position)
            position = end = _skip_space(text, position)
            values.append(value)
            if text.startswith(",", position):
                position += 1
            elif not text.startswith("]", position):
                break
    except ValueError:
        pass
    # A sample may end inside an array, but a whole file may not.
    return JsonRecords(values, invalid=int(whole), share=end / len(text), is_array=True)


def _decode_sequence(text: str, *, whole: bool) -> JsonRecords:
    values: list[Any] = []
    invalid = position = end = 0
    while invalid <= _MAX_INVALID_RECORDS + len(values):
        position = _skip_space(text, position)
        if position == len(text):
            break
        try:
            value, position = _decoder.raw_decode(text, position)
            values.append(value)
            end = position
        except ValueError:
            next_line = text.find("\n{", position)
            if next_line < 0:
                invalid += whole
                break
            invalid += 1
            position = next_line + 1
    return JsonRecords(values, invalid=invalid, share=(end or 1) / len(text))


def decode_truncated_record(text: str) -> Any | None:
    """Decode a record that is longer than the text, up to the last complete object in a list.

    None if the text contains no such object.
    """
    open_brackets: list[str] = []
    complete: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text):
        kind = text[token.start()]
        if kind in _CLOSING:
            open_brackets.append(kind)
        elif kind != '"':
            if not open_brackets or _CLOSING[open_brackets.pop()] != kind:
                return None
            if kind == "}" and open_brackets[-1:] == ["["]:
                complete = token.end(), "".join(open_brackets)
        elif len(token[0]) == 1:
            # The text ends inside of quotes.
            break
    if complete is None:
        return None
    end, still_open = complete
    closing = "".join(_CLOSING[kind] for kind in reversed(still_open))
    try:
        return _decoder.decode(text[:end] + closing)
    except ValueError:
        return None


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


_SAMPLE_BYTES: Final = 64 * 1024
_LONG_SAMPLE_BYTES: Final = 1024 * 1024
# At least this share of the records of a JSON file are objects.
_MIN_OBJECT_SHARE: Final = 0.9


class Json(TextFormat):
    name: ClassVar[str] = "json"
    title: ClassVar[str] = "JSON"
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".jsonl", ".ndjson", ".ldjson", ".geojson")

    def recognises(self, sample: Sample) -> bool:
        if first_character(sample) not in ("{", "["):
            return False
        records = _records(sample)
        objects = sum(type(value) is dict for value in records.values)
        return objects > 0 and objects >= _MIN_OBJECT_SHARE * (
            len(records.values) + records.invalid
        )

    def read(self, content: Content, *, suffix: str = "") -> FileFacts:  # noqa: ARG002 - one dialect
        for length in (_SAMPLE_BYTES, _LONG_SAMPLE_BYTES):
            sample = content.sample(length)
            records = _records(sample)
            if sample.whole or records.values:
                return _facts_of_records(records, sample)
        return _facts_of_truncated_record(sample)


def _records(sample: Sample) -> JsonRecords:
    data = sample.data.removeprefix(codecs.BOM_UTF8)
    try:
        valid = decode_valid_records(data, whole=sample.whole)
        return decode_records(text_of(sample), whole=sample.whole) if valid is None else valid
    except RecursionError:
        raise UnreadableFile("too_deep", "Its values nest too deeply to be read.") from None


def _facts_of_records(records: JsonRecords, sample: Sample) -> FileFacts:
    values, invalid = records.values, records.invalid
    if records.is_array and invalid:
        raise UnreadableFile("corrupt_file", "The JSON array is truncated or damaged.")
    objects = [value for value in values if type(value) is dict]
    if objects:
        invalid += len(values) - len(objects)
        known = schema_of_objects(objects)
    elif records.is_array or any(type(value) is list for value in values):
        known = (
            inferred_schema(("value",), (type_of_values(values),))
            if values
            else inferred_schema((), ())
        )
    elif invalid or values:
        raise UnreadableFile("not_json", "The file contains no JSON objects.")
    else:
        raise UnreadableFile("empty_file", "The file has no records.")
    valid = len(objects or values)
    if invalid > valid:
        raise UnreadableFile(
            "corrupt_file", f"{invalid} of {invalid + valid} records are not JSON objects."
        )
    remark = Remark("bad_records", f"{invalid} of {invalid + valid} records are not JSON objects.")
    remarks = (remark,) if invalid else ()
    if sample.whole:
        return FileFacts(known, valid, row_count_exact=True, remarks=remarks)
    if sample.total is None:
        return FileFacts(known, None, row_count_exact=False, remarks=remarks)
    estimate = round(valid / records.share * sample.total / len(sample.data))
    return FileFacts(known, estimate, row_count_exact=False, remarks=remarks)


def _facts_of_truncated_record(sample: Sample) -> FileFacts:
    """The facts of a file whose first record is longer than the sample."""
    record = decode_truncated_record(text_of(sample))
    if type(record) is not dict:
        raise UnreadableFile(
            "line_too_long", f"A record is longer than {_LONG_SAMPLE_BYTES:,} bytes."
        )
    reason = (
        f"Its first record is longer than {_LONG_SAMPLE_BYTES:,} bytes; only that much was read."
    )
    known = schema_of_objects([record])
    remark = Remark("cut_record", reason)
    return FileFacts(known, None, row_count_exact=False, remarks=(remark,))


def schema_of_objects(objects: list[dict[str, Any]]) -> KnownSchema:
    """The union of the objects' keys, with the narrowest types; raises UnreadableFile."""
    columns = columns_of(objects)
    check_width(len(columns))
    names = distinct_names([name_of(key) for key in columns])
    return inferred_schema(tuple(names), tuple(map(type_of_values, columns.values())))
