"""What things cost: prices under both spellings, features, allocations and amounts people set."""

from collections.abc import Iterable
from datetime import date
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, field

from lumos.config.section import Price, Section, Share, spelled
from lumos.errors import MisuseError, UnknownName
from lumos.model.metering import COST_TYPES, CostType

Method: TypeAlias = Literal["lineage_weighted", "equal_split", "last_touch"]
DEFAULT_CURRENCY: Final = "USD"

Amount: TypeAlias = Annotated[
    float, Meta(description="an amount of money per month; credits are below 0")
]
Currency: TypeAlias = Annotated[
    str, Meta(pattern=r"^[A-Za-z]{3}$", description="a currency by its three letters, such as EUR")
]
CostKey: TypeAlias = Annotated[
    str, Meta(pattern=r"^cost_per_\w+$", description="named after a unit, such as cost_per_credit")
]


class StorageCost(Section, frozen=True, kw_only=True):
    """What a provider takes for storage, by the gigabyte or by the terabyte.

    That is the price of its usual class; others have theirs in `classes`, by the gigabyte.
    """

    cost_per_gb_month: Price | None = None
    cost_per_tb_month: Price | None = None
    classes: dict[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [
            each for each in (self.cost_per_gb_month, self.cost_per_tb_month) if each is not None
        ]
        if len(given) > 1 or not (given or self.classes):
            raise MisuseError("Give either 'cost_per_gb_month' or 'cost_per_tb_month'.")


class StoragePrice(Section, frozen=True, kw_only=True):
    """The price of one storage class, which may also be given as a plain number."""

    shorthand: ClassVar[str | None] = "price_per_gb_month"

    price_per_gb_month: Price


class Attribution(Section, frozen=True, kw_only=True):
    """How cost travels along lineage."""

    method: Method = "lineage_weighted"


class Feature(Section, frozen=True, kw_only=True):
    """Datasets that belong together: by name, by pattern or by tag."""

    datasets: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.datasets or self.patterns or self.tags):
            raise MisuseError("Name some 'datasets', 'patterns' or 'tags'.")


class Allocation(Section, frozen=True, kw_only=True):
    """The share of one dataset's or job's cost that another one carries."""

    upstream: Annotated[str, spelled(also=("from",))]
    downstream: Annotated[str, spelled(also=("to",))]
    share: Share | None = None
    shares: dict[CostType, Share] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.share is None) == (not self.shares):
            raise MisuseError("Give either 'share', or 'shares' by cost type.")
        _check_types(self.shares)


class Override(Section, frozen=True, kw_only=True):
    """What a dataset or job costs by itself in a month, whatever was measured."""

    target: Annotated[str, spelled(also=("dataset", "job", "urn"))]
    costs: dict[CostType, Amount]
    since: str | None = None
    until: str | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.costs:
            raise MisuseError(f"Set the cost of '{self.target}', such as costs: {{storage: 120}}")
        _check_types(self.costs)
        first, last = self.first_day, self.last_day
        if first is not None and last is not None and last < first:
            raise MisuseError(f"'until' {last} is before 'since' {first}.")

    @property
    def first_day(self) -> date | None:
        return _day("since", self.since)

    @property
    def last_day(self) -> date | None:
        return _day("until", self.until)


class Costs(Section, frozen=True, kw_only=True):
    """What both sections on costs may hold beside prices."""

    currency: Currency | None = None
    attribution: Attribution | None = None
    features: dict[str, Feature] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    idle: dict[str, Amount] = field(default_factory=dict)
    shared: dict[str, Amount] = field(default_factory=dict)
    adjustments: dict[str, Amount] = field(default_factory=dict)
    committed: Feature | None = None


class CostModel(Costs, frozen=True, kw_only=True):
    """Prices by provider and engine."""

    storage: dict[str, StorageCost] = field(default_factory=dict)
    compute: dict[str, dict[CostKey, Price]] = field(default_factory=dict)


class CostCalculation(Costs, frozen=True, kw_only=True):
    """Prices by provider and storage class, and by engine and unit."""

    storage_pricing: dict[str, dict[str, StoragePrice]] = field(default_factory=dict)
    compute_pricing: dict[str, dict[str, Price]] = field(default_factory=dict)


def _check_types(names: Iterable[str]) -> None:
    for name in names:
        if name not in COST_TYPES:
            raise UnknownName("cost type", name, COST_TYPES, listed="Cost types")


def _day(key: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise MisuseError(f"'{key}' must be a day such as 2024-01-15, not '{text}'.") from None
