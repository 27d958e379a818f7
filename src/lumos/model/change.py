"""Schema changes, their verdicts, and the events that record them."""

import enum
import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from lumos.errors import UnknownName
from lumos.model.schema import Field
from lumos.model.types import DataType


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """A difference between two schemas at a path such as `properties.items[].price`."""

    path: str


class FieldAdded(SchemaChange, frozen=True, kw_only=True, tag="added"):
    """A new field; `position` is its index among its siblings."""

    after: Field
    position: int


class FieldRemoved(SchemaChange, frozen=True, kw_only=True, omit_defaults=True, tag="removed"):
    """A removed field; `position` was its index among its siblings, if known."""

    before: Field
    position: int | None = None


class TypeChanged(SchemaChange, frozen=True, kw_only=True, omit_defaults=True, tag="type_changed"):
    """A change of a type; `partition` and `key` are properties of the column."""

    before: DataType
    after: DataType
    partition: bool = False
    key: bool = False


class NullabilityChanged(
    SchemaChange, frozen=True, kw_only=True, omit_defaults=True, tag="nullability"
):
    """A change of nullability: `before` and `after` say whether nulls are allowed.

    `key` is a property of the column.
    """

    before: bool
    after: bool
    key: bool = False


class DefaultChanged(SchemaChange, frozen=True, kw_only=True, tag="default"):
    """A changed default value."""

    before: str | None
    after: str | None


class DescriptionChanged(SchemaChange, frozen=True, kw_only=True, tag="description"):
    """A changed description."""

    before: str | None
    after: str | None


class TagsChanged(SchemaChange, frozen=True, kw_only=True, tag="tags"):
    """Changed tags."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class KeyChanged(SchemaChange, frozen=True, kw_only=True, tag="key"):
    """A field was added to or removed from the key."""

    before: bool
    after: bool


class PartitioningChanged(SchemaChange, frozen=True, kw_only=True, tag="partitioning"):
    """A field became or ceased to be a partition column."""

    before: bool
    after: bool


class Reordered(SchemaChange, frozen=True, kw_only=True, tag="reordered"):
    """The common fields have another order; `path` is their parent ('' for columns)."""

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
    """The effect of a change on the consumers of a schema."""

    BREAKING = "breaking"
    UNDETERMINED = "undetermined"
    COMPATIBLE = "compatible"
    INFORMATIONAL = "informational"


class ConsumerUse(enum.StrEnum):
    """A kind of use of a column that can influence a verdict."""

    KEY = "key"
    JOINED = "joined"
    GROUPED = "grouped"
    FILTERED = "filtered"
    NOT_IN = "not_in"
    # Inserted into a column of the old type, or into one that does not allow nulls.
    SINK = "sink"
    NOT_NULL_SINK = "not_null_sink"
    # INSERT without a list of columns, UNION, CSV without a header.
    POSITIONAL = "positional"
    CAST = "cast"
    NORMALISED = "normalised"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change with its verdicts for consumers and for stored data, and the rule for them.

    If the uses of the column are known, they determine the consumer verdict. It is breaking if any
    use is in `breaks_if`. It is compatible if all uses are in `holds_if`, or if `breaks_if` is not
    empty and contains none of them.
    """

    change: AnySchemaChange
    consumer: Verdict
    storage: Verdict
    rule: str
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    breaks_if: tuple[ConsumerUse, ...] = ()
    holds_if: tuple[ConsumerUse, ...] = ()


class EventType(enum.StrEnum):
    """The type of a change of a dataset."""

    CREATED = "CREATED"
    MODIFIED = "MODIFIED"
    SCHEMA_CHANGED = "SCHEMA_CHANGED"
    METADATA_CHANGED = "METADATA_CHANGED"
    DELETED = "DELETED"
    RESTORED = "RESTORED"
    RENAMED = "RENAMED"
    MERGED = "MERGED"
    SPLIT = "SPLIT"


# A user incremented the major version although no rule found a breaking change.
DECLARED_BREAKING: Final = "declared-breaking"


class AffectedUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A use of a changed field; `path` is the path of the change, '' for a whole dataset."""

    path: str = ""
    reason: str = ""
    file: str | None = None
    line: int | None = None


class Affected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A downstream dataset that breaks or may break, its owners at that time, and the uses."""

    urn: str
    verdict: Verdict
    owners: tuple[str, ...] = ()
    uses: tuple[AffectedUse, ...] = ()


class BlastRadius(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The effect of a change on downstream datasets, with the lineage known at that time.

    The numbers include all datasets; `datasets` lists those that are affected most and nearest. If
    the effect is unknown, `problem` is the reason.
    """

    breaking: int = 0
    undetermined: int = 0
    datasets: tuple[Affected, ...] = ()
    problem: str | None = None

    @property
    def count(self) -> int:
        """The number of datasets that break or may break."""
        return self.breaking + self.undetermined

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners of the listed datasets, beginning with the worst affected."""
        return tuple(dict.fromkeys(owner for each in self.datasets for owner in each.owners))


# `log`: found in the log of the table, with the time in this log.
Cause: TypeAlias = Literal["scan", "event", "ci", "import", "user", "log"]


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded change; the same change detected twice has the same `event_id`."""

    event_id: str
    urn: str
    type: EventType
    at: datetime
    cause: Cause
    cloud_version: str
    schema_version: str
    # The user who made the change; for scans, the metadata contains the source instead.
    author: str | None = None
    source_path: str | None = None
    # The hashes of the schemas in the store.
    old_schema: str | None = None
    new_schema: str | None = None
    findings: tuple[Finding, ...] = ()
    # `reverted`: the schema is the same as an earlier one again.
    flags: tuple[str, ...] = ()
    summary: str = ""
    metadata: dict[str, str | int] = {}
    # None if it was not determined or no dataset is known to be downstream.
    affected: BlastRadius | None = None

    @property
    def affected_downstream(self) -> tuple[str, ...]:
        """The listed downstream datasets that the change breaks or may break."""
        return () if self.affected is None else tuple(each.urn for each in self.affected.datasets)

    @property
    def breaking(self) -> bool:
        """Whether unchanged consumers may fail, according to the rules or to a user."""
        return self.verdict is Verdict.BREAKING

    @property
    def breaking_changes(self) -> int:
        """The number of breaking changes: fields, a deleted dataset, and a declared change."""
        field_changes = sum(finding.consumer is Verdict.BREAKING for finding in self.findings)
        return field_changes + (self.type is EventType.DELETED) + (DECLARED_BREAKING in self.flags)

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict that was found or declared; deleting a dataset breaks its readers."""
        if self.type is EventType.DELETED or DECLARED_BREAKING in self.flags:
            return Verdict.BREAKING
        verdicts = {finding.consumer for finding in self.findings}
        return next((verdict for verdict in Verdict if verdict in verdicts), None)


def event_types(names: Iterable[EventType | str]) -> tuple[EventType, ...]:
    """Parse the names of event types, in any case; accepts a single name or several."""
    type_by_name = {each.value: each for each in EventType}
    types = []
    for name in (names,) if isinstance(names, str) else names:
        if str(name).upper() not in type_by_name:
            raise UnknownName("event type", str(name), type_by_name)
        types.append(type_by_name[str(name).upper()])
    return tuple(types)


def make_event_id(*parts: str) -> str:
    """A hash that identifies a change, so that recording the same change twice has no effect."""
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
