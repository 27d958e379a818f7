"""What can change in a schema, how it is judged, and the event that records it."""

import enum
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from lumos.model.schema import Field
from lumos.model.types import DataType


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """A difference between two schemas at a path such as `properties.items[].price`."""

    path: str


class FieldAdded(SchemaChange, frozen=True, kw_only=True, tag="added"):
    """A field that was not there; `position` is its place among its new siblings."""

    after: Field
    position: int


class FieldRemoved(SchemaChange, frozen=True, kw_only=True, omit_defaults=True, tag="removed"):
    """A field that is gone; `position` was its place among its old siblings, where known."""

    before: Field
    position: int | None = None


class TypeChanged(SchemaChange, frozen=True, kw_only=True, omit_defaults=True, tag="type_changed"):
    """Another type at the same path, perhaps that of a partition or a key column."""

    before: DataType
    after: DataType
    partition: bool = False
    key: bool = False


class NullabilityChanged(
    SchemaChange, frozen=True, kw_only=True, omit_defaults=True, tag="nullability"
):
    """Nulls became possible (`after` is true) or impossible, perhaps in a key column."""

    before: bool
    after: bool
    key: bool = False


class DefaultChanged(SchemaChange, frozen=True, kw_only=True, tag="default"):
    """Another default value."""

    before: str | None
    after: str | None


class DescriptionChanged(SchemaChange, frozen=True, kw_only=True, tag="description"):
    """Other words for the same field."""

    before: str | None
    after: str | None


class TagsChanged(SchemaChange, frozen=True, kw_only=True, tag="tags"):
    """Labels put on or taken off."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class KeyChanged(SchemaChange, frozen=True, kw_only=True, tag="key"):
    """A field joined or left the key."""

    before: bool
    after: bool


class PartitioningChanged(SchemaChange, frozen=True, kw_only=True, tag="partitioning"):
    """A field became or ceased to be a partition column."""

    before: bool
    after: bool


class Reordered(SchemaChange, frozen=True, kw_only=True, tag="reordered"):
    """The common fields stand in another order; the path is their parent's ('' for columns)."""

    before: tuple[str, ...]
    after: tuple[str, ...]


AnySchemaChange: TypeAlias = (
    FieldAdded
    | FieldRemoved
    | TypeChanged
    | NullabilityChanged
    | DefaultChanged
    | DescriptionChanged
    | TagsChanged
    | KeyChanged
    | PartitioningChanged
    | Reordered
)


class Verdict(enum.StrEnum):
    """What a change means to those who depend on the schema."""

    BREAKING = "breaking"
    UNDETERMINED = "undetermined"
    COMPATIBLE = "compatible"
    INFORMATIONAL = "informational"


class Use(enum.StrEnum):
    """How a consumer uses a column, as far as a verdict can depend on it."""

    KEY = "key"
    JOINED = "joined"
    GROUPED = "grouped"
    FILTERED = "filtered"
    NOT_IN = "not_in"
    # Inserted into a column of the old type, or into one that refuses nulls.
    SINK = "sink"
    NOT_NULL_SINK = "not_null_sink"
    # INSERT without a list of columns, UNION, CSV without a header.
    POSITIONAL = "positional"
    CAST = "cast"
    NORMALISED = "normalised"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change with both verdicts and the rule that gave them.

    Known uses may decide the consumer verdict: it is breaking where any is in `breaks_if`, and
    compatible where all are in `holds_if`, or where `breaks_if` left it open and none is in there.
    """

    change: AnySchemaChange
    consumer: Verdict
    storage: Verdict
    rule: str
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    breaks_if: tuple[Use, ...] = ()
    holds_if: tuple[Use, ...] = ()


class EventType(enum.StrEnum):
    """What happened to a dataset."""

    CREATED = "CREATED"
    MODIFIED = "MODIFIED"
    SCHEMA_CHANGED = "SCHEMA_CHANGED"
    METADATA_CHANGED = "METADATA_CHANGED"
    DELETED = "DELETED"
    RESTORED = "RESTORED"
    RENAMED = "RENAMED"
    MERGED = "MERGED"
    SPLIT = "SPLIT"


# A person stepped the major version although no rule found anything breaking.
DECLARED_BREAKING: Final = "declared-breaking"


class AffectedUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a dataset uses what changed; `path` is that of the change, '' for a whole dataset."""

    path: str = ""
    reason: str = ""
    file: str | None = None
    line: int | None = None


class Affected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset down the stream that a change breaks or may break, whose it was then, and where."""

    urn: str
    verdict: Verdict
    owners: tuple[str, ...] = ()
    uses: tuple[AffectedUse, ...] = ()


class BlastRadius(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a change does down the stream, by the lineage that was known when it was recorded.

    The counts are of all; `datasets` names the worst and nearest. `problem` says why it is not
    known.
    """

    breaking: int = 0
    undetermined: int = 0
    datasets: tuple[Affected, ...] = ()
    problem: str | None = None

    @property
    def count(self) -> int:
        """How many datasets break or may break."""
        return self.breaking + self.undetermined

    @property
    def owners(self) -> tuple[str, ...]:
        """Whose datasets are named, those of the worst first."""
        return tuple(dict.fromkeys(owner for each in self.datasets for owner in each.owners))


# `log`: a table's own log told of it, with its own time.
Cause: TypeAlias = Literal["scan", "event", "ci", "import", "user", "log"]


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded change; the same change found twice has the same `event_id`."""

    event_id: str
    urn: str
    type: EventType
    at: datetime
    cause: Cause
    cloud_version: str
    schema_version: str
    # The person behind it; scans name their source in the metadata instead.
    author: str | None = None
    source_path: str | None = None
    # Hashes under which the store keeps the schemas.
    old_schema: str | None = None
    new_schema: str | None = None
    findings: tuple[Finding, ...] = ()
    # `reverted`: the schema returned to an earlier one.
    flags: tuple[str, ...] = ()
    summary: str = ""
    metadata: dict[str, str | int] = {}
    # Nothing where nobody looked, or nothing was known to be downstream.
    affected: BlastRadius | None = None

    @property
    def affected_downstream(self) -> tuple[str, ...]:
        """The datasets down the stream that the change breaks or may break, as far as named."""
        return () if self.affected is None else tuple(each.urn for each in self.affected.datasets)

    @property
    def breaking(self) -> bool:
        """Whether an unchanged consumer may fail, by the rules or by a person's word."""
        return self.verdict is Verdict.BREAKING

    @property
    def verdict(self) -> Verdict | None:
        """The gravest that was found or declared; that a dataset is gone breaks its readers."""
        if self.type is EventType.DELETED or DECLARED_BREAKING in self.flags:
            return Verdict.BREAKING
        found = {finding.consumer for finding in self.findings}
        return next((verdict for verdict in Verdict if verdict in found), None)
