"""The result of a scan."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from lumos.model.dataset import Definition, DriftedShape, Location, Owner, Properties, Statistics
from lumos.model.schema import Schema

# The prefix of properties that all table formats have, such as `table.version`.
OF_TABLE: Final = "table."


class SourceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata that a source reports in addition to the schema; files report none."""

    description: str | None = None
    owner: Owner | None = None
    definition: Definition | None = None
    properties: Properties = {}


class PastSchema(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier schema from a table's log, and the time from which it was valid."""

    schema: Schema
    at: datetime
    version: str
    operation: str | None = None
    author: str | None = None
    # Whether `at` is exact: the log contains the time with a known time zone.
    exact_time: bool = True


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """The current version of a table and its earlier schemas from its log, oldest first.

    `has_data` is false for a schema registry, whose log only contains schemas.
    """

    version: str
    at: datetime
    operation: str | None = None
    past: tuple[PastSchema, ...] = ()
    features: tuple[str, ...] = ()
    has_data: bool = True


class ObservedRead(msgspec.Struct, frozen=True, kw_only=True):
    """A read of a dataset that a source reports; reads with the same `position` are one read."""

    path: str
    reader: str
    position: str


class SchemaMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The schemas of a dataset's files, stored for the next scan.

    `body` is their encoding by the scan, `schema` the schema that the files declare, and `recalled`
    the body that this scan loaded at its start.
    """

    body: bytes
    schema: Schema
    recalled: bytes | None = None


class FoundDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset as found in files or reported by its source.

    `content` changes with every file or, for sources that report metadata, with the metadata.
    `reverted` means that the schema is the same as an earlier one again. `renamed_from` and
    `merged_from` are paths of earlier datasets that this dataset continues. `split_from` is the
    path of an earlier dataset that was split; all parts have it, even the part with this path.
    """

    path: str
    # The display name, if it is not the end of the path.
    name: str | None = None
    format: str
    location: Location
    schema: Schema
    statistics: Statistics
    drift: tuple[DriftedShape, ...]
    content: str
    source_metadata: SourceMetadata | None = None
    table: TableState | None = None
    reverted: bool = False
    # Only set for files, since tables and databases declare their schema.
    memory: SchemaMemory | None = None
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None

    @property
    def is_reported_by_source(self) -> bool:
        """Whether all metadata comes from the source itself, not from files."""
        return self.source_metadata is not None and (self.table is None or not self.table.has_data)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A file or location that could not be read, and the reason.

    A `remark` is about a file that could be read.
    """

    path: str
    reason: str
    code: str
    remark: bool = False


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets with the same columns, and a hint (patterns and name) that would join them.

    `hint` is empty if no pattern matches only these datasets. `join_similar` says whether the
    setting `join_similar` of the source would join them too.
    """

    datasets: tuple[str, ...]
    names: tuple[str, ...]
    columns: int
    hint: tuple[str, ...]
    name: str
    join_similar: bool = False


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """The result of scanning one root. If it is not `complete`, no datasets may be removed."""

    datasets: Sequence[FoundDataset]
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
    reads: tuple[ObservedRead, ...] = ()
    # Paths of existing datasets outside of the scope of the scan.
    unscanned: tuple[str, ...] = ()
