"""The properties of a Hudi table in `hoodie.properties`, and its schema."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from lumos.formats.columns import with_distinct_names
from lumos.formats.interface import UnreadableFile
from lumos.model.conversions.avro import schema_from_avro
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import STRING

META_FOLDER: Final = ".hoodie"
_TIMELINE: Final = "timeline"
# The folders that may contain the instants, unless the properties name another one.
DEFAULT_TIMELINES: Final = (META_FOLDER, f"{META_FOLDER}/{_TIMELINE}")
# The backup remains if a writer stopped while it changed the file.
PROPERTY_FILES: Final = (
    f"{META_FOLDER}/hoodie.properties",
    f"{META_FOLDER}/hoodie.properties.backup",
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\\\\)*[=:\s]")
_SAVED_AT: Final = re.compile(r"#(?:Properties saved on|Updated at) (\S+)Z?\s*$", re.MULTILINE)
# Keys that are reported elsewhere, or that every table service changes.
_HIDDEN_KEYS: Final = (
    "hoodie.table.create.schema",
    "hoodie.table.checksum",
    "hoodie.table.metadata.partitions.inflight",
)


class HudiProperties:
    """The properties of a table, with Hudi's defaults for missing ones."""

    def __init__(self, data: bytes) -> None:
        self.data: Final = data
        # Java reads Latin-1; other characters are escaped.
        text = data.decode("latin-1")
        self.values: Final = java_properties(text)
        self.saved_at: Final = _saved_at(text)
        if not self.values.get("hoodie.table.name"):
            raise UnreadableFile(
                "broken_table", "hoodie.properties is damaged: it has no hoodie.table.name"
            )

    @property
    def version(self) -> int:
        """The table version: 6 for Hudi 0.x, 8 and more for 1.x."""
        return self._integer("hoodie.table.version") or 0

    @property
    def has_timeline_folder(self) -> bool:
        """Whether instants are in a separate folder, with their completion times in the names."""
        layout = self._integer("hoodie.timeline.layout.version")
        return self.version >= 8 if layout is None else layout >= 2

    @property
    def timeline(self) -> str:
        """The folder of instants that are not archived."""
        if not self.has_timeline_folder:
            return META_FOLDER
        return f"{META_FOLDER}/{self.values.get('hoodie.timeline.path') or _TIMELINE}"

    @property
    def archive(self) -> str:
        """The folder of archived instants."""
        if self.has_timeline_folder:
            return f"{self.timeline}/{self.values.get('hoodie.timeline.history.path') or 'history'}"
        return f"{META_FOLDER}/{self.values.get('hoodie.archivelog.folder') or 'archived'}"

    @property
    def is_in_utc(self) -> bool:
        """Whether instants are in UTC; by default they are in the time zone of the writer."""
        return self.values.get("hoodie.table.timeline.timezone", "").upper() == "UTC"

    @property
    def is_merged_on_read(self) -> bool:
        """Whether log files may contain newer rows than base files."""
        return self.values.get("hoodie.table.type", "").upper() == "MERGE_ON_READ"

    @property
    def has_meta_columns(self) -> bool:
        """Whether rows have Hudi's metadata columns."""
        return self.is_set("hoodie.populate.meta.fields", default=True)

    @property
    def drops_partition_columns(self) -> bool:
        """Whether partition columns are only in paths."""
        return self.is_set("hoodie.datasource.write.drop.partition.columns")

    @property
    def created_schema(self) -> str | None:
        """The Avro schema that the table was created with."""
        return self.values.get("hoodie.table.create.schema") or None

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the record key."""
        return self._names("hoodie.table.recordkey.fields")

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, without the key generator types after colons."""
        names = self._names("hoodie.table.partition.fields")
        return tuple(name.partition(":")[0] for name in names)

    @property
    def is_partitioned(self) -> bool | None:
        """Whether data is in partition folders; None for Hudi before 0.9."""
        return bool(self.partition_columns) or (None if self.version < 2 else False)

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The partitioning, such as `country` or `format[yyyy/MM/dd](ts)`."""
        date_format = self.values.get("hoodie.keygen.timebased.output.dateformat")
        texts = []
        for name in self._names("hoodie.table.partition.fields"):
            column, _, kind = name.partition(":")
            is_time = kind.upper() == "TIMESTAMP" if kind else self._has_time_partitions
            texts.append(f"format[{date_format}]({column})" if is_time and date_format else column)
        return tuple(texts)

    @property
    def identity_partition_columns(self) -> frozenset[str]:
        """The partition columns whose values are in the paths unchanged."""
        return frozenset(self.partition_by) & frozenset(self.partition_columns)

    @property
    def reported(self) -> dict[str, str]:
        """The properties to report, with Hudi's keys."""
        return {key: text for key, text in sorted(self.values.items()) if key not in _HIDDEN_KEYS}

    def is_set(self, key: str, *, default: bool = False) -> bool:
        """Whether a boolean property is true."""
        return self.values.get(key, str(default)).strip().lower() == "true"

    @property
    def _has_time_partitions(self) -> bool:
        kind = self.values.get("hoodie.table.keygenerator.type", "")
        class_name = self.values.get("hoodie.table.keygenerator.class", "")
        return kind.upper() == "TIMESTAMP" or class_name.endswith("TimestampBasedKeyGenerator")

    def _names(self, key: str) -> tuple[str, ...]:
        return tuple(name for each in self.values.get(key, "").split(",") if (name := each.strip()))

    def _integer(self, key: str) -> int | None:
        text = self.values.get(key, "").strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            reason = f"{key} in hoodie.properties is not a number: {text[:40]!r}"
            raise UnreadableFile("broken_table", reason)
        return int(text)


def java_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file, as `java.util.Properties` reads it."""
    values: dict[str, str] = {}
    for line in _lines(text):
        end = _SEPARATOR.search(line)
        index = len(line) if end is None else end.end() - 1
        rest = line[index:].lstrip(" \t\f")
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(" \t\f")
        values[_unescape(line[:index])] = _unescape(rest)
    return values


def _lines(text: str) -> list[str]:
    """The lines without comments; a line that ends in a backslash is joined to the next."""
    lines: list[str] = []
    continued = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        line = continued + line
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            continued = line[:-1]
            continue
        continued = ""
        lines.append(line)
    if continued:
        lines.append(continued)
    return lines


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: (
            chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _LETTERS.get(match[1], match[1])
        ),
        text,
    )


def _saved_at(text: str) -> datetime | None:
    match = _SAVED_AT.search(text)
    if match is None:
        return None
    try:
        saved = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return saved.replace(tzinfo=saved.tzinfo or UTC)


_META_COLUMNS: Final = frozenset(
    {
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "_hoodie_operation",
    }
)


def is_record(schema: str) -> bool:
    """Whether a schema has columns; deletes by key may write the schema `null`."""
    return '"record"' in schema


def hudi_schema(avro: str, schema_with_ids: str | None, properties: HudiProperties) -> Schema:
    """The schema of the table without Hudi's metadata columns; raises UnreadableFile."""
    plain = _schema_without_meta(avro, schema_with_ids)
    key, partitions = frozenset(properties.key), properties.identity_partition_columns
    fields = [
        replace(field, key=field.name in key, partition=field.name in partitions)
        for field in plain.fields
    ]
    if properties.drops_partition_columns:
        names = {field.name for field in fields}
        fields += [
            Field(name=name, type=STRING, partition=True)
            for name in properties.partition_columns
            if name not in names
        ]
    return Schema(fields=tuple(fields))


@lru_cache(maxsize=256)
def _schema_without_meta(avro: str, schema_with_ids: str | None) -> Schema:
    try:
        record = msgspec.json.decode(avro)
        if schema_with_ids is not None:
            _add_field_ids(record, msgspec.json.decode(schema_with_ids))
        schema = with_distinct_names(schema_from_avro(record))
    except RecursionError:
        raise UnreadableFile("broken_table", "The schema nests too deeply to be read") from None
    except ValueError as problem:
        raise UnreadableFile("broken_table", f"The schema is not valid JSON: {problem}") from None
    fields = (field for field in schema.fields if field.name not in _META_COLUMNS)
    return Schema(fields=tuple(_without_null_defaults(field) for field in fields))


def _without_null_defaults(field: Field) -> Field:
    """The field without `default: null`, which Hudi adds in some writes only."""
    nested = []
    for each in field.nested:
        plain = replace(each, default=None) if each.default == "null" else each
        if plain != NestedField(path=each.path):
            nested.append(plain)
    default = None if field.default == "null" else field.default
    return replace(field, default=default, nested=tuple(nested))


def _add_field_ids(avro: Any, with_ids: Any) -> None:
    """Copy the ids and comments of a type with field ids to the Avro type of the same shape."""
    if isinstance(avro, list):
        for option in avro:
            _add_field_ids(option, with_ids)
        return
    if not isinstance(avro, dict) or not isinstance(with_ids, dict):
        return
    kind = avro.get("type")
    if isinstance(kind, dict | list):
        _add_field_ids(kind, with_ids)
    elif kind != with_ids.get("type"):
        return
    elif kind == "record":
        _add_member_ids(avro, with_ids)
    elif kind == "array":
        avro["element-id"] = _id(with_ids, "element")
        _add_field_ids(avro.get("items"), with_ids.get("element"))
    elif kind == "map":
        avro["key-id"], avro["value-id"] = _id(with_ids, "key"), _id(with_ids, "value")
        _add_field_ids(avro.get("values"), with_ids.get("value"))


def _add_member_ids(avro: dict[str, Any], with_ids: dict[str, Any]) -> None:
    members = {
        member.get("name"): member
        for member in with_ids.get("fields") or ()
        if isinstance(member, dict) and isinstance(member.get("name"), str)
    }
    for field in avro.get("fields") or ():
        member = members.get(field.get("name")) if isinstance(field, dict) else None
        if member is not None:
            field["field-id"] = member.get("id")
            if member.get("doc"):
                field.setdefault("doc", member["doc"])
            _add_field_ids(field.get("type"), member.get("type"))


def _id(with_ids: dict[str, Any], part: str) -> Any:
    # Hudi writes both spellings, such as `element-id` and `element_id`.
    return with_ids.get(f"{part}-id", with_ids.get(f"{part}_id"))
