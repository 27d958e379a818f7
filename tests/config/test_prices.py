"""Both spellings of prices as one list, and which key is named where a price is missing."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from lumos.config import Settings, load
from lumos.config.check import check
from lumos.config.costs import FeatureSettings
from lumos.config.load import ConfigurationError
from lumos.config.prices import (
    CurrencyMix,
    MissingPrices,
    class_of,
    convert_quantity,
    features_of,
    method_of,
    monthly_amounts,
    prices_of,
    provider_of,
)
from lumos.errors import MisuseError, UnknownName

Load = Callable[..., Settings]
FOUNDING = Path(__file__).parent / "blocks"


def test_the_price_list_by_storage_class_is_read() -> None:
    prices = prices_of(load(FOUNDING / "cost_calculation.yaml", environment={}))
    assert prices.storage == {
        ("s3", "standard"): Decimal("0.025"),
        ("s3", "glacier"): Decimal("0.005"),
        ("s3", "deep_archive"): Decimal("0.0011"),
        ("gcs", "nearline"): Decimal("0.01"),
        ("azure_blob", "hot"): Decimal("0.019"),
        ("azure_blob", "archive"): Decimal("0"),
    }
    assert prices.compute == {
        ("spark", "core_hour"): Decimal("0.14"),
        ("spark", "gb_processed"): Decimal("0.02"),
        ("flink", "core_hour"): Decimal("0.11"),
        ("databricks", "dbu"): Decimal("0.5"),
        ("emr", "instance_hour"): Decimal("0.3"),
    }
    assert prices.currency == "USD"


def test_the_price_list_by_provider_is_read() -> None:
    settings = load(FOUNDING / "cost_model.yaml", environment={})
    prices = prices_of(settings)
    assert prices.storage == {
        ("s3", "standard"): Decimal("0.025"),
        ("snowflake", "standard"): Decimal("38") / 1024,
    }
    assert prices.compute == {
        ("spark", "dbu"): Decimal("0.2"),
        ("snowflake", "credit"): Decimal("2.5"),
    }
    assert method_of(settings) == "equal_split"


@pytest.mark.parametrize(
    ("text", "provider", "storage_class", "key"),
    [
        ("", "s3", "glacier", "cost_calculation.storage_pricing.aws_s3.glacier"),
        ("", "azure_blob", "", "cost_calculation.storage_pricing.azure_blob.hot"),
        ("cost_calculation: {storage_pricing: {s3: {standard: 1}}}", "s3", "deep_archive", "cost_calculation.storage_pricing.s3.deep_archive"),
        ("cost_model: {storage: {s3: {cost_per_gb_month: 1}}}", "s3", "glacier", "cost_model.storage.s3.classes.glacier"),
        ("cost_model: {storage: {s3: {cost_per_gb_month: 1}}}", "gcs", "standard", "cost_model.storage.gcs.cost_per_gb_month"),
    ],
)  # fmt: skip
def test_the_key_of_a_missing_storage_price_is_one_that_works(
    load_text: Load, text: str, provider: str, storage_class: str, key: str
) -> None:
    prices = prices_of(load_text(text))
    assert prices.of_storage(provider, storage_class) is None
    assert prices.storage_key(provider, storage_class) == key
    set_there = prices_of(load_text(_nested(text, key)))
    assert set_there.of_storage(provider, storage_class) == Decimal("7")


@pytest.mark.parametrize(
    ("text", "engine", "unit", "key"),
    [
        ("", "spark", "core_hour", "cost_calculation.compute_pricing.spark.per_core_hour"),
        ("", "databricks", "dbu", "cost_calculation.compute_pricing.databricks.dbu_hour"),
        ("", "emr", "instance_hour", "cost_calculation.compute_pricing.emr.instance_hour"),
        ("cost_model: {storage: {s3: {cost_per_gb_month: 1}}}", "snowflake", "credit", "cost_model.compute.snowflake.cost_per_credit"),
    ],
)  # fmt: skip
def test_the_key_of_a_missing_compute_price_is_one_that_works(
    load_text: Load, text: str, engine: str, unit: str, key: str
) -> None:
    prices = prices_of(load_text(text))
    assert prices.of_engine(engine) == {}
    assert prices.compute_key(engine, unit) == key
    assert prices_of(load_text(_nested(text, key))).of_engine(engine) == {unit: Decimal("7")}


def _nested(text: str, key: str) -> str:
    """The configuration with a 7 at a dotted key."""
    import yaml

    tree = yaml.safe_load(text) or {}
    *steps, last = key.split(".")
    node = tree
    for step in steps:
        node = node.setdefault(step, {})
    node[last] = 7
    return yaml.safe_dump(tree)


def test_all_missing_keys_are_named_once() -> None:
    problem = MissingPrices(["b", "a", "b"])
    assert problem.keys == ("a", "b")
    assert str(problem) == "Prices are missing. Set a, b in lumos.yaml."


@pytest.mark.parametrize(
    ("spelling", "provider"),
    [("aws_s3", "s3"), ("S3A", "s3"), ("gs", "gcs"), ("abfss", "azure_blob"), ("file", "local"), ("hdfs", "hdfs")],
)  # fmt: skip
def test_a_provider_has_several_spellings(spelling: str, provider: str) -> None:
    assert provider_of(spelling) == provider


@pytest.mark.parametrize(
    ("spelling", "storage_class"),
    [("STANDARD_IA", "standard_ia"), ("infrequent access", "standard_ia"), ("GLACIER_IR", "glacier_ir"), ("glacier-deep-archive", "deep_archive")],
)  # fmt: skip
def test_a_storage_class_has_several_spellings(spelling: str, storage_class: str) -> None:
    assert class_of(spelling) == storage_class


@pytest.mark.parametrize(
    ("quantity", "unit", "expected"),
    [
        ("2", "TB_scanned", ("2048", "gb_processed")),
        ("5400", "seconds", ("1.5", "hour")),
        ("3", "DBUs", ("3", "dbu")),
        ("4", "core-hours", ("4", "core_hour")),
        ("4", "vcpu_hours", ("4", "core_hour")),
        ("9", "messages", ("9", "message")),
    ],
)  # fmt: skip
def test_quantities_are_counted_in_the_unit_of_prices(
    quantity: str, unit: str, expected: tuple[str, str]
) -> None:
    assert convert_quantity(Decimal(quantity), unit) == (Decimal(expected[0]), expected[1])


def test_one_price_that_is_said_twice_and_differs_is_refused(load_text: Load) -> None:
    settings = load_text(
        "cost_model: {storage: {s3: {cost_per_gb_month: 1}}}\n"
        "cost_calculation: {storage_pricing: {aws_s3: {standard: 2}}}\n"
    )
    with pytest.raises(MisuseError, match=r"cost_model\.storage\.s3.*aws_s3\.standard"):
        prices_of(settings)
    assert any("Costs cannot be computed" in note.text for note in check(settings, {}))


def test_two_currencies_are_refused(load_text: Load) -> None:
    with pytest.raises(CurrencyMix, match="EUR and USD") as caught:
        prices_of(load_text("cost_model: {currency: EUR}\ncost_calculation: {currency: usd}"))
    assert caught.value.currencies == ("EUR", "USD")


def test_features_are_named_by_list_pattern_or_tag(load_text: Load) -> None:
    settings = load_text(
        "features: {checkout: [orders, 'carts/*'], schema_tracking: true}\n"
        "cost_model: {features: {search: {datasets: [clicks], patterns: ['search/*'], tags: [search]}}}\n"
    )
    assert features_of(settings) == {
        "checkout": FeatureSettings(patterns=("orders", "carts/*")),
        "search": FeatureSettings(datasets=("clicks",), patterns=("search/*",), tags=("search",)),
    }


def test_amounts_keep_their_sign(load_text: Load) -> None:
    settings = load_text(
        "cost_calculation: {idle: {cluster: 30.5}, adjustments: {credit: -12, refund: -0.25}}"
    )
    assert monthly_amounts(settings, "idle") == Decimal("30.5")
    assert monthly_amounts(settings, "adjustments") == Decimal("-12.25")
    assert monthly_amounts(settings, "shared") == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("allocations: [{from: a, to: b, share: 1.1}]", "a share from 0 to 1"),
        ("allocations: [{from: a, to: b, share: -0.1}]", "a share from 0 to 1"),
        ("allocations: [{from: a, to: b}]", "either 'share'"),
        ("overrides: [{dataset: a, costs: {}}]", "Set the cost of 'a'"),
        ("overrides: [{dataset: a, costs: {storage: 1}, since: May}]", "must be a day"),
        ("overrides: [{dataset: a, costs: {storage: 1}, since: 2024-02-01, until: 2024-01-01}]", "is before 'since'"),
        ("overrides: [{dataset: a, costs: {storag: 1}}]", "No cost type named 'storag'.*Did you mean 'storage'"),
        ("allocations: [{from: a, to: b, shares: {computr: 0.5}}]", "No cost type named 'computr'.*Did you mean 'compute'"),
        ("features: {a: {}}", "'datasets', 'patterns' or 'tags'"),
        ("currency: dollars", "three letters"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(load_text: Load, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        load_text(f"cost_calculation: {{{text}}}")


@pytest.mark.parametrize(
    ("key", "storage", "compute"),
    [
        ("s3.standard", {("s3", "standard"): Decimal("0.021")}, {}),
        ("aws_s3.STANDARD", {("s3", "standard"): Decimal("0.021")}, {}),
        ("s3.glacier", {("s3", "glacier"): Decimal("0.021")}, {}),
        ("spark.per_core_hour", {}, {("spark", "core_hour"): Decimal("0.021")}),
        ("spark.core_hour", {}, {("spark", "core_hour"): Decimal("0.021")}),
    ],
)
def test_a_price_can_be_another_for_a_moment(
    load_text: Load,
    key: str,
    storage: dict[tuple[str, str], Decimal],
    compute: dict[tuple[str, str], Decimal],
) -> None:
    prices = prices_of(
        load_text(
            "cost_calculation: {storage_pricing: {s3: {standard: 1}}, compute_pricing: {spark: {per_core_hour: 1}}}"
        )
    )
    changed = prices.with_changes({key: Decimal("0.021")})
    assert changed.storage == {**prices.storage, **storage}
    assert changed.compute == {**prices.compute, **compute}


@pytest.mark.parametrize("key", ["s3.standrd", "s3", "flink.per_core_hour"])
def test_a_price_that_nothing_is_counted_by_is_refused(load_text: Load, key: str) -> None:
    prices = prices_of(load_text("cost_calculation: {storage_pricing: {s3: {standard: 1}}}"))
    with pytest.raises(UnknownName):
        prices.with_changes({key: Decimal(1)})
