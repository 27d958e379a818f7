"""Every command that takes a dataset accepts the same spellings and gives the same errors."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main

from lumos import Lumos
from lumos.cli.main import app
from lumos.cli.options import BREAKING
from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/sales/orders"
SPELLINGS = [
    pytest.param(ORDERS, id="urn"),
    pytest.param("orders", id="name"),
    pytest.param("sales/orders", id="end-of-path"),
]
COMMANDS = [
    "show {}",
    "history {}",
    "changes {}",
    "impact {} --drop amount",
    "explain {}",
    "profile {}",
    "schema diff {} {}",
    "schema predict {} proposed.schema",
    "schema history {}",
    "schema timeline {}",
    "schema evolution {}",
    "version show {}",
    "version map {}",
    "version bump {} --type DATA_UPDATE",
    "version scan {}",
    "lineage show {}",
    "lineage show {}.amount",
    "lineage path {}.amount {}.amount",
    "owner list {}",
    "owner assign {} ann",
    "owner remove {} ann",
    "tag add {} pii",
    "tag remove {} pii",
    "tag list {}",
    "compliance add {} gdpr",
    "compliance remove {} gdpr",
    "compliance list {}",
    "doc set {} text",
    "doc remove {}",
    "doc list {}",
    "property set {} sla=1h",
    "property remove {} sla",
    "property list {}",
    "term add {} Order",
    "term remove {} Order",
    "term list {}",
    "usage show {}",
    "cost report {}",
    "cost trend {}",
    "cost explain {}",
    "cost page {} --output page.html",
    "cost savings {}",
    "cost top --move {}=standard",
    "cost set {} storage=5",
    "cost remove {} storage",
]
# These patterns select datasets, and may select none.
FILTERS = {"export"}
# These need the files of the dataset after they have found it.
NEED_FILES = {"explain", "profile"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of datasets, two of which have the same name."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "lumos.yaml").write_text(
        "storage: {path: lumos.db}\n"
        "cost_model: {storage: {file: {classes: {standard: 1, cold: 2}}}}\n"
    )
    (folder / "proposed.schema").write_text("id INT64\namount INT64\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        lumos = Lumos()
        names = ["sales/orders", "crm/customers", "old/customers"]
        RecordedLake(lumos).see_all(names, "id INT64\namount INT64")
        lumos.annotations.owners.add("ann")
        lumos.annotations.owners.assign("ann", ORDERS)
        lumos.annotations.tags.set(ORDERS, "pii")
        lumos.annotations.compliance.set(ORDERS, "gdpr")
        lumos.annotations.docs.set(ORDERS, "Orders")
        lumos.annotations.properties.set(ORDERS, {"sla": "1h"})
        lumos.annotations.terms.define("Order", definition="What is bought")
        lumos.annotations.terms.set(ORDERS, "Order")
        lumos.cost_sources.set(ORDERS, {"storage": 7})
        lumos.cost.record("2024-01")
        lumos.database.engine.dispose()
    return folder


@pytest.fixture
def own_store(filled: Path, workplace: Path) -> None:
    """A copy of the store for commands that change it."""
    shutil.copytree(filled, workplace, dirs_exist_ok=True)


@pytest.fixture
def shared_store(filled: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """The store itself, for commands that fail before they change it."""
    monkeypatch.chdir(filled)


def words(command: str, dataset: str) -> list[str]:
    return [word.replace("{}", dataset) for word in command.split()]


def commands_with_datasets(command: click.Command, path: str = "") -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from commands_with_datasets(each, f"{path} {name}".strip())
    elif not command.hidden and any("DATASET" in str(each.metavar) for each in command.params):
        yield path


@pytest.mark.usefixtures("own_store")
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_dataset_is_found_by_urn_name_and_end_of_path(
    lumos: Any, command: str, spelling: str
) -> None:
    result = lumos(*words(command, spelling))
    if command.split()[0] in NEED_FILES:
        assert "orders" in result.err
        assert "No dataset" not in result.err
    else:
        assert result.code in (0, BREAKING), result.err


@pytest.mark.usefixtures("shared_store")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_name_is_answered_with_the_nearest_ones(lumos: Any, command: str) -> None:
    result = lumos(*words(command, "ordres"))
    assert result.code == 2
    expected = "in the store. Did you mean 'orders'? See all with: lumos list"
    assert expected in " ".join(result.err.split())
    assert "No dataset ordres" in result.err


@pytest.mark.usefixtures("shared_store")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_ambiguous_name_is_answered_with_the_candidates(lumos: Any, command: str) -> None:
    result = lumos(*words(command, "customers"))
    assert result.code == 2
    expected = "Several datasets are called 'customers'. Name one of them: "
    assert f"{expected}crm/customers, old/customers" in " ".join(result.err.split())


def test_no_command_with_a_dataset_is_left_out() -> None:
    tested = {" ".join(command.split("{}")[0].split()) for command in COMMANDS}
    missing = [
        path
        for path in commands_with_datasets(typer.main.get_command(app))
        if path not in FILTERS and not any(each.startswith(path) for each in tested)
    ]
    assert missing == []
