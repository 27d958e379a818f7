"""Arguments that people write in another way than expected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from recorded_lake import RecordedLake


@pytest.fixture
def lake(workplace: Path) -> Path:
    """A store with one dataset and its owner."""
    lumos = Lumos()
    RecordedLake(lumos).see_all(["sales/orders"], "id INT64\namount INT64")
    lumos.annotations.owners.add("ann")
    return workplace


@pytest.mark.usefixtures("lake")
def test_a_column_can_be_annotated_as_dataset_and_column(lumos: Callable[..., Any]) -> None:
    assert "tag pii added to amount" in lumos("tag", "add", "orders.amount", "pii").out
    assert "amount pii" in lumos("tag", "list", "orders").words
    unknown = lumos("tag", "add", "orders.amuont", "pii")
    assert unknown.code == 2
    assert "No field 'amuont' in orders. Did you mean 'amount'?" in unknown.err


@pytest.mark.usefixtures("lake")
def test_swapped_arguments_of_owner_assign_are_refused(lumos: Callable[..., Any]) -> None:
    done = lumos("owner", "assign", "ann", "orders")
    assert done.code == 2
    assert "The dataset comes first: lumos owner assign orders ann" in done.err
    assert lumos("owner", "list", "orders", "--json").json["owned"][0]["owners"] == []


@pytest.mark.usefixtures("lake")
def test_an_owner_that_nothing_has_cannot_be_removed(lumos: Callable[..., Any]) -> None:
    done = lumos("owner", "remove", "orders", "nobody")
    assert done.code == 2
    assert "No owner named 'nobody'" in done.err
    assert "lumos owner list orders" in done.err


def test_a_schema_export_into_a_folder_named_like_a_dataset_is_refused(
    lumos: Callable[..., Any], lake: Path
) -> None:
    done = lumos("schema", "export", "orders")
    assert done.code == 2
    assert "'orders' is a dataset" in done.err
    assert not (lake / "orders").exists()


@pytest.mark.usefixtures("lake")
def test_a_new_term_like_a_known_one_is_pointed_out(lumos: Callable[..., Any]) -> None:
    lumos("term", "add", "orders", "Customer")
    done = lumos("term", "add", "orders", "Custmer")
    assert "Did you mean 'Customer'?" in done.err


@pytest.mark.usefixtures("lake")
def test_errors_name_datasets_unless_a_urn_was_given(lumos: Callable[..., Any]) -> None:
    done = lumos("impact", "orders", "--drop", "nope")
    assert "orders has no column 'nope'" in done.err
    assert "lumos://" not in done.err
    assert "lumos show orders" in done.err


@pytest.mark.usefixtures("lake")
def test_properties_are_compared(lumos: Callable[..., Any]) -> None:
    lumos("export", "a.json")
    lumos("property", "set", "orders", "sla=daily")
    lumos("export", "b.json")
    done = lumos("diff", "a.json", "b.json")
    assert "properties added sla daily informational" in done.words
