"""Cost types, attribution methods, reserved cost names and metered resource usage."""

import hashlib
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, TypeAlias, get_args

import msgspec

CostType: TypeAlias = Literal["storage", "compute", "egress", "other"]
COST_TYPES: Final[tuple[CostType, ...]] = get_args(CostType)

AttributionMethod: TypeAlias = Literal["lineage_weighted", "equal_split", "last_touch"]
METHODS: Final[tuple[AttributionMethod, ...]] = get_args(AttributionMethod)
DEFAULT_METHOD: Final[AttributionMethod] = "lineage_weighted"

# Costs that are never attributed along lineage, with the names of OpenCost.
IDLE: Final = "__idle__"
SHARED: Final = "__shared__"
UNALLOCATED: Final = "__unallocated__"
ADJUSTMENT: Final = "__adjustment__"
RESERVED: Final = (IDLE, SHARED, UNALLOCATED, ADJUSTMENT)


class MeteredUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The resource usage of a job, or of producing a dataset, in an interval of time.

    `target` is a name, a URN or a reserved name. `run` identifies a run; without it, there is one
    record per subject and interval. `amount` is the cost in micro-units, if the reporter knows it;
    otherwise, the cost is computed from `quantities` and prices. `outputs` are the locations that
    were written.
    """

    target: str
    is_dataset: bool = False
    engine: str = ""
    started_at: datetime
    ended_at: datetime
    quantities: dict[str, Decimal] = {}
    run: str = ""
    type: CostType = "compute"
    amount: int | None = None
    currency: str | None = None
    outputs: tuple[str, ...] = ()

    @property
    def is_reserved(self) -> bool:
        """Whether this cost belongs to no job and no dataset."""
        return self.target in RESERVED

    @property
    def subject(self) -> tuple[str, ...]:
        """The fields by which overlapping records are detected."""
        measures = ("amount",) if self.amount is not None else tuple(sorted(self.quantities))
        kind = "dataset" if self.is_dataset else "job"
        return kind, self.target, self.engine, self.type, self.run, *measures

    @property
    def key(self) -> str:
        """The key by which a later import of the same reporter replaces this record."""
        interval = () if self.run else (self.started_at.isoformat(), self.ended_at.isoformat())
        text = "\x1f".join((*self.subject, *interval))
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def overlaps(self, other: "MeteredUsage") -> bool:
        """Whether two records of the same subject overlap in time."""
        if self.run:
            return True
        is_equal = (self.started_at, self.ended_at) == (other.started_at, other.ended_at)
        return is_equal or (self.started_at < other.ended_at and other.started_at < self.ended_at)
