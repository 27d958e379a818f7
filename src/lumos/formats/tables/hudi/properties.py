"""`hoodie.properties`: what a table says of itself, as Java writes properties down."""

import re
from datetime import UTC, datetime
from typing import Final

from lumos.formats.interface import UnreadableFile

META_FOLDER: Final = ".hoodie"
_TIMELINE: Final = "timeline"
# Where instants lie, unless the properties name another folder.
USUAL_TIMELINES: Final = (META_FOLDER, f"{META_FOLDER}/{_TIMELINE}")
# A writer that died while it changed the file left its copy behind.
_PLACES: Final = ("hoodie.properties", "hoodie.properties.backup")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\\\\)*[=:\s]")
_SAVED: Final = re.compile(r"#(?:Properties saved on|Updated at) (\S+)Z?\s*$", re.MULTILINE)
# Told elsewhere, or changed by every service that runs.
_LEFT_OUT: Final = (
    "hoodie.table.create.schema",
    "hoodie.table.checksum",
    "hoodie.table.metadata.partitions.inflight",
)


class TableProperties:
    """The properties of one table, with what Hudi takes for granted where one is missing."""

    def __init__(self, data: bytes) -> None:
        self.data: Final = data
        # Latin-1 is what Java reads; any other character is an escape.
        text = data.decode("latin-1")
        self.values: Final = java_properties(text)
        self.saved_at: Final = _saved_at(text)
        if not self.values.get("hoodie.table.name"):
            raise UnreadableFile("broken_table", "hoodie.properties names no table: it is damaged")

    @property
    def version(self) -> int:
        """The version of the table's layout: 6 for Hudi 0.x, 8 and more for 1.x."""
        return self._number("hoodie.table.version") or 0

    @property
    def has_folder_of_instants(self) -> bool:
        """Whether instants lie in a folder of their own, with their ends in their names."""
        layout = self._number("hoodie.timeline.layout.version")
        return self.version >= 8 if layout is None else layout >= 2

    @property
    def timeline(self) -> str:
        """The folder of the instants that are not yet archived."""
        if not self.has_folder_of_instants:
            return META_FOLDER
        return f"{META_FOLDER}/{self.values.get('hoodie.timeline.path') or _TIMELINE}"

    @property
    def archive(self) -> str:
        """The folder of the instants that are."""
        if self.has_folder_of_instants:
            return f"{self.timeline}/{self.values.get('hoodie.timeline.history.path') or 'history'}"
        return f"{META_FOLDER}/{self.values.get('hoodie.archivelog.folder') or 'archived'}"

    @property
    def is_in_utc(self) -> bool:
        """Whether the zone of instants is known; by default it was that of the writer's machine."""
        return self.values.get("hoodie.table.timeline.timezone", "").upper() == "UTC"

    @property
    def is_merged_on_read(self) -> bool:
        """Whether newer rows may lie in log files beside the base files."""
        return self.values.get("hoodie.table.type", "").upper() == "MERGE_ON_READ"

    @property
    def has_meta_columns(self) -> bool:
        """Whether every row carries Hudi's own columns."""
        return self.is_set("hoodie.populate.meta.fields", default=True)

    @property
    def drops_partition_columns(self) -> bool:
        """Whether partition columns stand in paths alone."""
        return self.is_set("hoodie.datasource.write.drop.partition.columns")

    @property
    def created_schema(self) -> str | None:
        """The schema that the table was created with, as Avro JSON."""
        return self.values.get("hoodie.table.create.schema") or None

    @property
    def key(self) -> tuple[str, ...]:
        """The columns whose values are a record's key."""
        return self._names("hoodie.table.recordkey.fields")

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that partition paths are made of; a kind may follow each after a colon."""
        names = self._names("hoodie.table.partition.fields")
        return tuple(name.partition(":")[0] for name in names)

    @property
    def is_partitioned(self) -> bool | None:
        """Whether data lies in folders; tables of Hudi before 0.9 do not say."""
        return bool(self.partition_columns) or (None if self.version < 2 else False)

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The partitioning in words."""
        form = self.values.get("hoodie.keygen.timebased.output.dateformat")
        words = []
        for name in self._names("hoodie.table.partition.fields"):
            column, _, kind = name.partition(":")
            is_time = kind.upper() == "TIMESTAMP" if kind else self._is_by_time
            words.append(f"format[{form}]({column})" if is_time and form else column)
        return tuple(words)

    @property
    def plain_partition_columns(self) -> frozenset[str]:
        """Those partition columns whose own values stand in the paths."""
        return frozenset(self.partition_by) & frozenset(self.partition_columns)

    @property
    def shown(self) -> dict[str, str]:
        """What is worth telling, under Hudi's own keys."""
        return {key: text for key, text in sorted(self.values.items()) if key not in _LEFT_OUT}

    def is_set(self, key: str, *, default: bool = False) -> bool:
        """Whether a switch is on."""
        return self.values.get(key, str(default)).strip().lower() == "true"

    @property
    def _is_by_time(self) -> bool:
        kind = self.values.get("hoodie.table.keygenerator.type", "")
        maker = self.values.get("hoodie.table.keygenerator.class", "")
        return kind.upper() == "TIMESTAMP" or maker.endswith("TimestampBasedKeyGenerator")

    def _names(self, key: str) -> tuple[str, ...]:
        return tuple(name for each in self.values.get(key, "").split(",") if (name := each.strip()))

    def _number(self, key: str) -> int | None:
        text = self.values.get(key, "").strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            reason = f"In hoodie.properties {key} is no number: {text[:40]!r}"
            raise UnreadableFile("broken_table", reason)
        return int(text)


def candidates() -> tuple[str, ...]:
    """Where the properties may lie, the best place first."""
    return tuple(f"{META_FOLDER}/{name}" for name in _PLACES)


def java_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file, as `java.util.Properties` reads it."""
    values: dict[str, str] = {}
    for line in _lines(text):
        end = _SEPARATOR.search(line)
        place = len(line) if end is None else end.end() - 1
        rest = line[place:].lstrip(" \t\f")
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(" \t\f")
        values[_plain(line[:place])] = _plain(rest)
    return values


def _lines(text: str) -> list[str]:
    """Lines that say something, each whole: a backslash at a line's end carries it on."""
    lines: list[str] = []
    begun = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not begun and (not line or line[0] in "#!"):
            continue
        line = begun + line
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            begun = line[:-1]
            continue
        begun = ""
        lines.append(line)
    if begun:
        lines.append(begun)
    return lines


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _LETTERS.get(escaped, escaped)


def _saved_at(text: str) -> datetime | None:
    match = _SAVED.search(text)
    if match is None:
        return None
    try:
        saved = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return saved.replace(tzinfo=saved.tzinfo or UTC)
