"""What jobs used, as whoever measured it tells: quantities of work, or amounts of money."""

import hashlib
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, TypeAlias

import msgspec

CostType: TypeAlias = Literal["storage", "compute", "egress", "other"]
COST_TYPES: Final[tuple[CostType, ...]] = ("storage", "compute", "egress", "other")

# Cost that lineage never carries, as OpenCost names it; an adjustment is signed.
IDLE: Final = "__idle__"
SHARED: Final = "__shared__"
UNALLOCATED: Final = "__unallocated__"
ADJUSTMENT: Final = "__adjustment__"
RESERVED: Final = (IDLE, SHARED, UNALLOCATED, ADJUSTMENT)


class Metered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job, or the making of a dataset, used from one moment to another.

    `target` is a name or a URN, or one of the reserved names. A `run` is told from others by its
    id; without one it is the only thing that its reporter says of that stretch of time. What was
    paid is `amount`, in micro-units, where the reporter knows that; otherwise prices make it of
    `quantities`. `outputs` are places that were written.
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
        """Whether this is cost of no job and no dataset."""
        return self.target in RESERVED

    @property
    def subject(self) -> tuple[str, ...]:
        """What two of these have in common that count the same."""
        counted = ("amount",) if self.amount is not None else tuple(sorted(self.quantities))
        what = "dataset" if self.is_dataset else "job"
        return what, self.target, self.engine, self.type, self.run, *counted

    @property
    def key(self) -> str:
        """The same for what a later report of the same reporter replaces."""
        when = () if self.run else (self.started_at.isoformat(), self.ended_at.isoformat())
        text = "\x1f".join((*self.subject, *when))
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def overlaps(self, other: "Metered") -> bool:
        """Whether two of the same subject count some time twice."""
        if self.run:
            return True
        same = (self.started_at, self.ended_at) == (other.started_at, other.ended_at)
        return same or (self.started_at < other.ended_at and other.started_at < self.ended_at)
