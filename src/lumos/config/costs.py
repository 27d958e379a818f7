"""The two cost sections: prices in two layouts, features, allocations and overrides."""

from collections.abc import Iterable
from datetime import date
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta, field

from lumos.config.section import Price, Section, Share, alternative_names
from lumos.errors import MisuseError, UnknownName
from lumos.model.cost import COST_TYPES, DEFAULT_METHOD, AttributionMethod, CostType

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
    """The storage price of a provider, per gigabyte or per terabyte.

    It applies to the default storage class; `classes` are the prices of other classes per gigabyte.
    """

    cost_per_gb_month: Price | None = None
    cost_per_tb_month: Price | None = None
    classes: dict[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        prices = [
            price for price in (self.cost_per_gb_month, self.cost_per_tb_month) if price is not None
        ]
        if len(prices) > 1 or not (prices or self.classes):
            raise MisuseError("Give either 'cost_per_gb_month' or 'cost_per_tb_month'.")


class StoragePrice(Section, frozen=True, kw_only=True):
    """The price of one storage class; a plain number is accepted too."""

    shorthand: ClassVar[str | None] = "price_per_gb_month"

    price_per_gb_month: Price


class AttributionSettings(Section, frozen=True, kw_only=True):
    """How cost is attributed along lineage."""

    method: AttributionMethod = DEFAULT_METHOD


class FeatureSettings(Section, frozen=True, kw_only=True):
    """A set of datasets by name, pattern or tag."""

    datasets: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.datasets or self.patterns or self.tags):
            raise MisuseError("Name some 'datasets', 'patterns' or 'tags'.")


class Allocation(Section, frozen=True, kw_only=True):
    """The share of a dataset's or job's cost that is passed on to a downstream dataset or job."""

    upstream: Annotated[str, alternative_names(also=("from",))]
    downstream: Annotated[str, alternative_names(also=("to",))]
    share: Share | None = None
    shares: dict[CostType, Share] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.share is None) == (not self.shares):
            raise MisuseError("Give either 'share', or 'shares' by cost type.")
        _check_types(self.shares)


class Override(Section, frozen=True, kw_only=True):
    """The monthly own cost of a dataset or job, which replaces the measured cost."""

    target: Annotated[str, alternative_names(also=("dataset", "job", "urn"))]
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
        return _parse_day("since", self.since)

    @property
    def last_day(self) -> date | None:
        return _parse_day("until", self.until)


class CostSettings(Section, frozen=True, kw_only=True):
    """The keys of both cost sections, except for prices."""

    currency: Currency | None = None
    attribution: AttributionSettings | None = None
    features: dict[str, FeatureSettings] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    idle: dict[str, Amount] = field(default_factory=dict)
    shared: dict[str, Amount] = field(default_factory=dict)
    adjustments: dict[str, Amount] = field(default_factory=dict)
    committed: FeatureSettings | None = None


class CostModel(CostSettings, frozen=True, kw_only=True):
    """Prices by provider and engine."""

    storage: dict[str, StorageCost] = field(default_factory=dict)
    compute: dict[str, dict[CostKey, Price]] = field(default_factory=dict)


class CostCalculation(CostSettings, frozen=True, kw_only=True):
    """Prices by provider and storage class, and by engine and unit."""

    storage_pricing: dict[str, dict[str, StoragePrice]] = field(default_factory=dict)
    compute_pricing: dict[str, dict[str, Price]] = field(default_factory=dict)


def _check_types(names: Iterable[str]) -> None:
    for name in names:
        if name not in COST_TYPES:
            raise UnknownName("cost type", name, COST_TYPES, listed="Cost types")


def _parse_day(key: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise MisuseError(f"'{key}' must be a day such as 2024-01-15, not '{text}'.") from None
