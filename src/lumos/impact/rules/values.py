"""What is told of an impact."""

import msgspec

from lumos.impact.rules.type_uses import ValueType
from lumos.model.change import AnySchemaChange, Verdict


def rank(verdict: Verdict) -> int:
    """Small is grave; what is informational does as little harm as what is compatible."""
    # Asked very often, and enumerations are slow to look up.
    if verdict is Verdict.BREAKING:
        return 0
    return 1 if verdict is Verdict.UNDETERMINED else 2


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a dataset breaks or does not, with clause and place.

    `usage` is where in the statement: JOIN, FILTER, PROJECTION, INSERT, ... `path` is the way from
    the change to the column that is used there, ends included, where it is about one. `columns`
    are all changed columns that lead there.
    """

    text: str
    verdict: Verdict
    usage: str | None = None
    clause: str | None = None
    file: str | None = None
    line: int | None = None
    path: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()


class ColumnImpact(msgspec.Struct, frozen=True, kw_only=True):
    """A column that changes as a consequence, and the way from the change to it, ends included.

    `before` or `after` is None where there is no such column; an unknown type was not determined.
    """

    name: str
    before: ValueType | None
    after: ValueType | None
    path: tuple[tuple[str, str], ...]


class DatasetImpact(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does to one dataset down the stream.

    Unless `is_affected`, it uses nothing that changes.
    """

    urn: str
    verdict: Verdict
    distance: int
    owners: tuple[str, ...] = ()
    columns: tuple[ColumnImpact, ...] = ()
    reasons: tuple[Reason, ...] = ()
    is_affected: bool = True


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the downstream was determined."""

    datasets: int
    determined: int

    @property
    def share(self) -> float:
        return self.determined / self.datasets if self.datasets else 1.0


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """What changes of a dataset do, worst first; `order` is the way to update what breaks."""

    urn: str
    changes: tuple[AnySchemaChange, ...]
    downstream: tuple[DatasetImpact, ...]
    recommendations: tuple[str, ...]
    coverage: Coverage
    order: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The gravest of all; none where nothing is known to be downstream."""
        return min((each.verdict for each in self.downstream), key=rank, default=None)
