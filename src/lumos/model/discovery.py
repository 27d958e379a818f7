"""What a scan brings home."""

from datetime import datetime
from typing import Final

import msgspec

from lumos.model.dataset import Definition, DriftedShape, Location, Owner, Properties, Statistics
from lumos.model.schema import Schema

# Properties of this beginning are what every table format tells, such as `table.version`.
OF_TABLE: Final = "table."


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a place says of a dataset by itself, beside its schema; files say nothing."""

    description: str | None = None
    owner: Owner | None = None
    definition: Definition | None = None
    properties: Properties = {}


class PastSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema that a table's log tells of, and since when the table had it."""

    schema: Schema
    at: datetime
    version: str
    operation: str | None = None
    author: str | None = None
    # Whether the log itself tells the time, in a zone that is known.
    exact_time: bool = True


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """What a table's own log says of its current version and of its way there, oldest first."""

    version: str
    at: datetime
    operation: str | None = None
    past: tuple[PastSchema, ...] = ()
    features: tuple[str, ...] = ()


class SchemaMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the next scan must know of the schemas that a dataset's files had.

    `body` is in the encoding of the pipeline, `schema` is the one that the files declare, and
    `recalled` is the body that this scan started from.
    """

    body: bytes
    schema: Schema
    recalled: bytes | None = None


class FoundDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset as its files, or its place, show it.

    `content` changes whenever a file does or, where the place tells of its datasets, whenever
    what is told does. `reverted` says that the schema just returned to an earlier one;
    `renamed_from` and `merged_from` are paths of datasets that earlier scans found and that are
    this one now. `split_from` is the path of an earlier dataset that came apart, of which this one
    is a part; all parts carry it, also the one that keeps the path.
    """

    path: str
    # What people call it, where that is not the end of its path.
    name: str | None = None
    format: str
    location: Location
    schema: Schema
    statistics: Statistics
    drift: tuple[DriftedShape, ...]
    content: str
    told: Told | None = None
    table: TableState | None = None
    reverted: bool = False
    # Files alone need one: tables and databases declare their schema.
    memory: SchemaMemory | None = None
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None

    @property
    def is_told_alone(self) -> bool:
        """Whether a place tells all that is known of it, and no files do."""
        return self.told is not None and self.table is None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A file or place that could not be read, and why; a remark is on one that was read."""

    path: str
    reason: str
    code: str
    remark: bool = False


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets that have the same columns, with the patterns and name of a hint to join them.

    Without patterns that match them alone, `hint` is empty. `join_similar` says whether that
    setting of the source would join them as well.
    """

    datasets: tuple[str, ...]
    names: tuple[str, ...]
    columns: int
    hint: tuple[str, ...]
    name: str
    join_similar: bool = False


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """All that one scan of a root found; an incomplete one must not make anything disappear."""

    datasets: tuple[FoundDataset, ...]
    problems: tuple[Problem, ...] = ()
    files_listed: int = 0
    files_read: int = 0
    files_failed: int = 0
    # Files that are not data or only accompany data.
    files_skipped: int = 0
    tables: int = 0
    tables_read: int = 0
    complete: bool = True
    suggestions: tuple[Suggestion, ...] = ()
