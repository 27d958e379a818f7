"""The price list: merges the prices of both cost sections and normalizes their units."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from lumos.config.costs import (
    DEFAULT_CURRENCY,
    Allocation,
    CostCalculation,
    CostModel,
    CostSettings,
    FeatureSettings,
    Override,
)
from lumos.config.settings import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.model.cost import DEFAULT_METHOD, AttributionMethod

# The size of a gigabyte in all prices.
GB: Final = 1024**3
_GB_PER_TB: Final = 1024
_SECONDS_PER_HOUR: Final = 3600
_MAX_LISTED: Final = 20

SectionName: TypeAlias = Literal["cost_model", "cost_calculation"]
_PROVIDERS: Final = {
    "aws_s3": "s3", "amazon_s3": "s3", "aws": "s3", "s3a": "s3", "s3n": "s3",
    "gs": "gcs", "google_cloud_storage": "gcs", "gcp": "gcs",
    "azure": "azure_blob", "abfs": "azure_blob", "abfss": "azure_blob", "wasb": "azure_blob",
    "wasbs": "azure_blob", "adl": "azure_blob", "adls": "azure_blob", "adls_gen2": "azure_blob",
    "azure_data_lake": "azure_blob", "azure_storage": "azure_blob",
    "file": "local", "postgresql": "postgres",
}  # fmt: skip
_DEFAULT_CLASSES: Final = {"azure_blob": "hot"}
_STANDARD: Final = "standard"
_CLASSES: Final = {
    "s3": ("standard", "intelligent_tiering", "standard_ia", "onezone_ia", "glacier_ir", "glacier",
           "deep_archive", "reduced_redundancy", "express_onezone", "outposts", "snow"),
    "gcs": ("standard", "nearline", "coldline", "archive", "multi_regional", "regional",
            "durable_reduced_availability"),
    "azure_blob": ("hot", "cool", "cold", "archive", "premium"),
}  # fmt: skip
_CLASS_SPELLINGS: Final = {
    "infrequent_access": "standard_ia", "ia": "standard_ia", "one_zone_ia": "onezone_ia",
    "one_zone_infrequent_access": "onezone_ia", "standard_infrequent_access": "standard_ia",
    "glacier_instant_retrieval": "glacier_ir", "glacier_instant": "glacier_ir",
    "glacier_flexible_retrieval": "glacier", "glacier_flexible": "glacier",
    "glacier_deep_archive": "deep_archive", "express_one_zone": "express_onezone",
    "cost_per_gb_month": "", "price_per_gb_month": "",
}  # fmt: skip
# Providers that charge for every stored byte; for others, a price is optional.
_CHARGING_PROVIDERS: Final = frozenset(
    ("s3", "gcs", "azure_blob", "snowflake", "bigquery", "redshift")
)
_ENGINES: Final = {
    "apache_spark": "spark", "pyspark": "spark", "apache_flink": "flink", "aws_emr": "emr",
    "amazon_emr": "emr",
}  # fmt: skip
_UNITS: Final = {
    "dbu_hour": "dbu", "dbus": "dbu", "vcpu_hour": "core_hour", "cpu_hour": "core_hour",
    "vcore_hour": "core_hour", "node_hour": "instance_hour", "gb": "gb_processed",
    "gb_scanned": "gb_processed", "gb_read": "gb_processed", "tb": "tb_processed",
    "tb_scanned": "tb_processed", "execution_hour": "hour", "warehouse_hour": "hour",
    "execution_second": "second",
}  # fmt: skip
_UNITS_WITHOUT_PREFIX: Final = {"dbu": "dbu_hour", "instance_hour": "instance_hour"}
_SPACES: Final = re.compile(r"[\s-]+")


class MissingPrices(MisuseError):
    """Prices are missing for measured usage; `keys` are the keys to set."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = tuple(sorted(set(keys)))
        more = len(self.keys) - _MAX_LISTED
        listed = ", ".join(self.keys[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")
        what = "A price is" if len(self.keys) == 1 else "Prices are"
        super().__init__(f"{what} missing. Set {listed} in lumos.yaml.")


class NoPrices(MisuseError):
    """No price is configured; the message shows an example for the providers and engines in use."""

    def __init__(self, providers: Iterable[str], engines: Iterable[str]) -> None:
        self.providers = tuple(providers) or ("local",)
        self.engines = tuple(engines)
        lines = ["No prices are configured, so nothing has a cost. Add your prices to lumos.yaml:"]
        lines += ["cost_model:", "  storage:"]
        lines += [f"    {each}: {{cost_per_gb_month: 0.023}}" for each in self.providers]
        lines += ["  compute:"] if self.engines else []
        lines += [f"    {each}: {{cost_per_hour: 0.15}}" for each in self.engines]
        super().__init__("\n".join(lines))


class CurrencyMix(MisuseError):
    """Amounts in several currencies, which cannot be added up."""

    def __init__(self, currencies: Iterable[str], where: str) -> None:
        self.currencies = tuple(sorted(set(currencies)))
        super().__init__(
            f"{where} {' and '.join(self.currencies)}. Lumos cannot add up several currencies: "
            "convert the amounts to one, and set 'currency' to it."
        )


class Prices(NamedTuple):
    """Prices of storage and compute.

    Storage is per GB and month by provider and class; compute is by engine and unit.
    """

    currency: str = DEFAULT_CURRENCY
    storage: Mapping[tuple[str, str], Decimal] = {}
    compute: Mapping[tuple[str, str], Decimal] = {}
    section: SectionName = "cost_calculation"
    names_in_config: Mapping[str, str] = {}

    def of_storage(self, provider: str, storage_class: str) -> Decimal | None:
        """The price of a GB per month, or None."""
        return self.storage.get((provider, storage_class or default_class(provider)))

    def of_engine(self, engine: str) -> dict[str, Decimal]:
        """The price of each unit of an engine."""
        return {unit: price for (each, unit), price in self.compute.items() if each == engine}

    def storage_key(self, provider: str, storage_class: str) -> str:
        """The configuration key of a storage price."""
        storage_class = storage_class or default_class(provider)
        if self.section == "cost_model":
            name = self.names_in_config.get(provider, provider)
            is_default = storage_class == default_class(provider)
            key = "cost_per_gb_month" if is_default else f"classes.{storage_class}"
            return f"cost_model.storage.{name}.{key}"
        name = self.names_in_config.get(provider, "aws_s3" if provider == "s3" else provider)
        return f"cost_calculation.storage_pricing.{name}.{storage_class}"

    def compute_key(self, engine: str, unit: str) -> str:
        """The configuration key of a compute price."""
        if self.section == "cost_model":
            return f"cost_model.compute.{engine}.cost_per_{unit}"
        key = _UNITS_WITHOUT_PREFIX.get(unit, f"per_{unit}")
        return f"cost_calculation.compute_pricing.{engine}.{key}"

    def with_changes(self, prices: Mapping[str, Decimal]) -> "Prices":
        """The prices with replacements by keys such as `s3.glacier` or `spark.per_core_hour`."""
        storage, compute = dict(self.storage), dict(self.compute)
        for key, price in prices.items():
            name, dot, rest = key.strip().partition(".")
            storage_price = provider_of(name), class_of(rest) or default_class(provider_of(name))
            unit, factor = _unit(rest)
            if price < 0:
                raise MisuseError(f"The price {price} of '{key}' is negative.")
            if dot and (
                storage_price in storage or storage_price[1] in _CLASSES.get(storage_price[0], ())
            ):
                storage[storage_price] = price
            elif dot and (engine_of(name), unit) in compute:
                compute[engine_of(name), unit] = price * factor
            else:
                known = [f"{each}.{name}" for each, name in (*storage, *compute)]
                raise UnknownName("price", key, known, listed="Prices")
        return self._replace(storage=storage, compute=compute)


@cache
def provider_of(name: str) -> str:
    """The canonical provider: `s3` for aws_s3 and s3a, `local` for file."""
    plain = _normalize_name(name)
    return _PROVIDERS.get(plain, plain)


@cache
def class_of(name: str) -> str:
    """The canonical storage class: `standard_ia` for STANDARD_IA and infrequent_access."""
    plain = _normalize_name(name)
    return _CLASS_SPELLINGS.get(plain, plain)


def default_class(provider: str) -> str:
    """The storage class of data for which no class is known."""
    return _DEFAULT_CLASSES.get(provider, _STANDARD)


def charges_for_storage(provider: str) -> bool:
    """Whether a provider charges for every stored byte, so that a missing price is an error."""
    return provider in _CHARGING_PROVIDERS


def engine_of(name: str) -> str:
    """The canonical engine: `emr` for aws_emr."""
    plain = _normalize_name(name)
    return _ENGINES.get(plain, plain)


def convert_quantity(quantity: Decimal, unit: str) -> tuple[Decimal, str]:
    """A quantity in the unit of the price list: 2 TB are 2048 GB."""
    known, factor = _unit(unit)
    return quantity / factor, known


def exact_decimal(number: float) -> Decimal:
    """The exact decimal as written: 0.023, not its binary approximation."""
    return Decimal(repr(number))


def cost_sections(settings: Settings) -> tuple[CostSettings, CostSettings]:
    """Both sections on costs."""
    return settings.cost_model, settings.cost_calculation


def prices_of(settings: Settings) -> Prices:
    """The prices of both sections merged; raises if they contradict each other."""
    model, calculation = settings.cost_model, settings.cost_calculation
    storage: dict[tuple[str, str], tuple[Decimal, str]] = {}
    compute: dict[tuple[str, str], tuple[Decimal, str]] = {}
    names_in_config: dict[str, str] = {}
    for name, price_key, price, key in (*_model_storage(model), *_calculation_storage(calculation)):
        names_in_config.setdefault(price_key[0], name)
        _add_price(storage, price_key, price, key)
    for price_key, price, key in (
        *_compute(model.compute, "cost_model.compute"),
        *_compute(calculation.compute_pricing, "cost_calculation.compute_pricing"),
    ):
        _add_price(compute, price_key, price, key)
    uses_model = bool(model.storage or model.compute)
    uses_calculation = bool(calculation.storage_pricing or calculation.compute_pricing)
    return Prices(
        currency=_currency(settings),
        storage={price_key: price for price_key, (price, _) in storage.items()},
        compute={price_key: price for price_key, (price, _) in compute.items()},
        section="cost_model" if uses_model and not uses_calculation else "cost_calculation",
        names_in_config=names_in_config,
    )


def method_of(settings: Settings) -> AttributionMethod:
    """The configured attribution method."""
    values = [each.attribution.method for each in cost_sections(settings) if each.attribution]
    if len(set(values)) > 1:
        raise MisuseError(
            f"cost_model.attribution.method is {values[0]} and cost_calculation.attribution.method "
            f"is {values[1]}. Keep one of them."
        )
    return values[0] if values else DEFAULT_METHOD


def features_of(settings: Settings) -> dict[str, FeatureSettings]:
    """The features by name, including plain lists under `features`."""
    features = {
        name: FeatureSettings(patterns=value)
        for name, value in settings.features.items()
        if isinstance(value, tuple) and value
    }
    for section in cost_sections(settings):
        for name, feature in section.features.items():
            if name in features:
                raise MisuseError(f"The feature '{name}' is defined twice. Keep one of them.")
            features[name] = feature
    return features


def allocations_of(settings: Settings) -> tuple[Allocation, ...]:
    """The allocations of both sections."""
    return tuple(each for section in cost_sections(settings) for each in section.allocations)


def overrides_of(settings: Settings) -> tuple[Override, ...]:
    """The overrides of both sections."""
    return tuple(each for section in cost_sections(settings) for each in section.overrides)


def committed_of(settings: Settings) -> tuple[FeatureSettings, ...]:
    """Costs that are still due after a removal: reserved capacity, retention, legal holds."""
    return tuple(each.committed for each in cost_sections(settings) if each.committed is not None)


def monthly_amounts(settings: Settings, kind: Literal["idle", "shared", "adjustments"]) -> Decimal:
    """The sum of idle, shared or adjustment amounts per month."""
    return sum(
        (
            exact_decimal(amount)
            for section in cost_sections(settings)
            for amount in getattr(section, kind).values()
        ),
        Decimal(0),
    )


def _normalize_name(name: str) -> str:
    return _SPACES.sub("_", name.strip().lower())


def _unit(name: str) -> tuple[str, Decimal]:
    """The canonical unit, and the factor for converting a price per named unit to it."""
    plain = _normalize_name(name)
    for prefix in ("cost_per_", "price_per_", "per_"):
        plain = plain.removeprefix(prefix)
    singular = plain if plain.endswith("ss") else plain.removesuffix("s")
    unit = _UNITS.get(plain, _UNITS.get(singular, singular))
    if unit == "tb_processed":
        return "gb_processed", Decimal(1) / _GB_PER_TB
    if unit == "second":
        return "hour", Decimal(_SECONDS_PER_HOUR)
    return unit, Decimal(1)


def _add_price(
    prices: dict[tuple[str, str], tuple[Decimal, str]],
    price_key: tuple[str, str],
    price: Decimal,
    key: str,
) -> None:
    first = prices.setdefault(price_key, (price, key))
    if first[0] != price:
        raise MisuseError(f"'{first[1]}' and '{key}' set the same price differently. Keep one.")


_StoragePrices: TypeAlias = Iterable[tuple[str, tuple[str, str], Decimal, str]]
_ComputePrices: TypeAlias = Iterable[tuple[tuple[str, str], Decimal, str]]


def _model_storage(model: CostModel) -> _StoragePrices:
    for name, cost in model.storage.items():
        provider, key = provider_of(name), f"cost_model.storage.{name}"
        default_key = provider, default_class(provider)
        if cost.cost_per_gb_month is not None:
            yield (
                name,
                default_key,
                exact_decimal(cost.cost_per_gb_month),
                f"{key}.cost_per_gb_month",
            )
        if cost.cost_per_tb_month is not None:
            price = exact_decimal(cost.cost_per_tb_month) / _GB_PER_TB
            yield name, default_key, price, f"{key}.cost_per_tb_month"
        for each, number in cost.classes.items():
            yield name, (provider, class_of(each)), exact_decimal(number), f"{key}.classes.{each}"


def _calculation_storage(calculation: CostCalculation) -> _StoragePrices:
    for name, classes in calculation.storage_pricing.items():
        provider = provider_of(name)
        for each, price in classes.items():
            price_key = provider, class_of(each) or default_class(provider)
            key = f"cost_calculation.storage_pricing.{name}.{each}"
            yield name, price_key, exact_decimal(price.price_per_gb_month), key


def _compute(prices: Mapping[str, Mapping[str, float]], key: str) -> _ComputePrices:
    for name, units in prices.items():
        for each, number in units.items():
            unit, factor = _unit(each)
            yield (engine_of(name), unit), exact_decimal(number) * factor, f"{key}.{name}.{each}"


def _currency(settings: Settings) -> str:
    values = {
        each.currency.upper() for each in cost_sections(settings) if each.currency is not None
    }
    if len(values) > 1:
        raise CurrencyMix(values, "cost_model.currency and cost_calculation.currency are")
    return next(iter(values), DEFAULT_CURRENCY)
