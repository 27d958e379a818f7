"""Results of an impact analysis."""

import msgspec

from lumos.impact.rules.type_uses import ValueType
from lumos.model.change import AnySchemaChange, Verdict


def rank(verdict: Verdict) -> int:
    """Sort key of a verdict, most severe first; informational is as good as compatible."""
    # Called very often; a lookup by enum member would be slower.
    if verdict is Verdict.BREAKING:
        return 0
    return 1 if verdict is Verdict.UNDETERMINED else 2


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a dataset breaks or not, with clause and position.

    `usage` is the kind of clause: JOIN, FILTER, PROJECTION, INSERT, ... `path` leads from the
    changed column to the column used in the clause. `columns` are all changed columns from which
    that column is derived, `fields` the same with nested fields, as in `items[].sku`.
    """

    text: str
    verdict: Verdict
    usage: str | None = None
    clause: str | None = None
    file: str | None = None
    line: int | None = None
    path: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


class ColumnImpact(msgspec.Struct, frozen=True, kw_only=True):
    """A column that changes as a result, with the path from the change to it.

    `before` or `after` is None if the column does not exist.
    """

    name: str
    before: ValueType | None
    after: ValueType | None
    path: tuple[tuple[str, str], ...]


class DatasetImpact(msgspec.Struct, frozen=True, kw_only=True):
    """Impact on one downstream dataset; unless `is_affected`, it uses nothing that changes."""

    urn: str
    verdict: Verdict
    distance: int
    owners: tuple[str, ...] = ()
    columns: tuple[ColumnImpact, ...] = ()
    reasons: tuple[Reason, ...] = ()
    is_affected: bool = True


class ImpactCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How many downstream datasets have a verdict."""

    datasets: int
    determined: int

    @property
    def share(self) -> float:
        return self.determined / self.datasets if self.datasets else 1.0


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """Impact of changes on all downstream datasets, worst first.

    `order` lists the breaking datasets in the order to update them.
    """

    urn: str
    changes: tuple[AnySchemaChange, ...]
    downstream: tuple[DatasetImpact, ...]
    recommendations: tuple[str, ...]
    coverage: ImpactCoverage
    order: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The most severe verdict; None if there are no downstream datasets."""
        return min((each.verdict for each in self.downstream), key=rank, default=None)
