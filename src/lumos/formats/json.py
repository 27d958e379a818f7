"""JSON: an array, lines, or objects one after the other; names and types from a bounded sample."""

import codecs
from typing import Any, ClassVar, Final

from lumos.formats.interface import (
    Content,
    FileFacts,
    KnownSchema,
    Remark,
    Sample,
    TextFormat,
    UnreadableFile,
    check_width,
    inferred,
)
from lumos.formats.json_records import Records, all_records, cut_record, quick_records
from lumos.formats.json_types import columns_of, name_of, type_of_values
from lumos.formats.names import distinct_names
from lumos.formats.text import first_character, text_of

_SAMPLE: Final = 64 * 1024
_LONG_SAMPLE: Final = 1024 * 1024
_EVIDENT_SHARE: Final = 0.9


class Json(TextFormat):
    name: ClassVar[str] = "json"
    title: ClassVar[str] = "JSON"
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".jsonl", ".ndjson", ".ldjson", ".geojson")

    def recognises(self, sample: Sample) -> bool:
        if first_character(sample) not in ("{", "["):
            return False
        records = _records(sample)
        objects = sum(type(value) is dict for value in records.values)
        return objects > 0 and objects >= _EVIDENT_SHARE * (len(records.values) + records.bad)

    def read(self, content: Content, *, suffix: str = "") -> FileFacts:  # noqa: ARG002 - one dialect
        for length in (_SAMPLE, _LONG_SAMPLE):
            sample = content.sample(length)
            records = _records(sample)
            if sample.whole or records.values:
                return _facts(records, sample)
        return _cut_facts(sample)


def _records(sample: Sample) -> Records:
    data = sample.data.removeprefix(codecs.BOM_UTF8)
    try:
        quick = quick_records(data, whole=sample.whole)
        return all_records(text_of(sample), whole=sample.whole) if quick is None else quick
    except RecursionError:
        raise UnreadableFile("too_deep", "Its values nest too deeply to be read.") from None


def _facts(records: Records, sample: Sample) -> FileFacts:
    values, bad = records.values, records.bad
    if records.is_array and bad:
        raise UnreadableFile("corrupt_file", "The JSON array is cut off or damaged.")
    objects = [value for value in values if type(value) is dict]
    if objects:
        bad += len(values) - len(objects)
        known = _schema(objects)
    elif records.is_array or any(type(value) is list for value in values):
        known = inferred(("value",), (type_of_values(values),)) if values else inferred((), ())
    elif bad or values:
        raise UnreadableFile("not_json", "The file holds no JSON objects.")
    else:
        raise UnreadableFile("empty_file", "The file has no records.")
    good = len(objects or values)
    if bad > good:
        raise UnreadableFile("corrupt_file", f"{bad} of {bad + good} records are no JSON objects.")
    remark = Remark("bad_records", f"{bad} of {bad + good} records are no JSON objects.")
    remarks = (remark,) if bad else ()
    if sample.whole:
        return FileFacts(known, good, row_count_exact=True, remarks=remarks)
    if sample.total is None:
        return FileFacts(known, None, row_count_exact=False, remarks=remarks)
    estimate = round(good / records.share * sample.total / len(sample.data))
    return FileFacts(known, estimate, row_count_exact=False, remarks=remarks)


def _cut_facts(sample: Sample) -> FileFacts:
    """The facts of a file whose first record alone is longer than any sample."""
    record = cut_record(text_of(sample))
    if type(record) is not dict:
        raise UnreadableFile("line_too_long", f"A record is longer than {_LONG_SAMPLE:,} bytes.")
    reason = f"Its first record is longer than {_LONG_SAMPLE:,} bytes; only that much was read."
    return FileFacts(
        _schema([record]), None, row_count_exact=False, remarks=(Remark("cut_record", reason),)
    )


def _schema(objects: list[dict[str, Any]]) -> KnownSchema:
    columns = columns_of(objects)
    check_width(len(columns))
    names = distinct_names([name_of(key) for key in columns])
    return inferred(tuple(names), tuple(map(type_of_values, columns.values())))
