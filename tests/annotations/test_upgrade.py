"""A store with annotations of several reporters is upgraded, and shows the same as before.

`store_0016.json` has the rows of a store as Lumos wrote them before annotations had a table, what
commands and exports showed then, and what they showed after annotations were retracted. Since
then, the data source is called `source` instead of `place`.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from lumos import Lumos
from lumos.annotations.lists import list_annotations
from lumos.annotations.reports import ListedAnnotation
from lumos.store import Database, Store

SHOWN = ("urn", "field", "slot", "name", "value", "by")
Recorded = dict[str, Any]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    """The rows of a store at revision 0016, and what was visible in it."""
    text = Path(__file__).with_name("store_0016.json").read_text()
    return json.loads(text.replace('"by": "place"', '"by": "source"'))  # type: ignore[no-any-return]


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, workplace: Path) -> dict[str, object]:
    """The settings of a database of each kind, without tables."""
    if request.param == "sqlite":
        return {"storage.path": str(workplace / "lumos.db")}
    return {
        "storage.backend": "postgres",
        "storage.connection_string": request.getfixturevalue("emptied_postgres"),
    }


@pytest.fixture
def upgraded(stored: dict[str, object], recorded: Recorded) -> Lumos:
    """That store after its upgrade."""
    lumos = Lumos(overrides=stored)
    database = lumos.database
    if database.engine.dialect.name == "sqlite":
        Path(str(database.engine.url.database)).touch()
    _migrate(database, "0016")
    with database.writing() as connection:
        for name, rows in recorded["tables"].items():
            table = sa.table(name, *map(sa.column, rows[0]))
            connection.execute(table.insert(), [_typed(row) for row in rows])
    database.upgrade()
    return lumos


def _migrate(database: Database, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", "lumos.store:migrations")
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    types: dict[str, Callable[[Any], Any]] = {"body": str.encode, "breaking": bool}
    return {name: types[name](value) if name in types else value for name, value in row.items()}


def _listed(lumos: Lumos) -> dict[str, Any]:
    people = lumos.annotations
    owners = list_annotations(Store.open(lumos.database), None, slots=("owner",))
    lists: dict[str, Iterable[ListedAnnotation]] = {
        "doc": people.docs.list().annotations,
        "tag": people.tags.list().annotations,
        "compliance": people.compliance.list().annotations,
        "property": people.properties.list().annotations,
        "term": people.terms.list().annotations,
        "owner": owners.annotations,
    }
    return {
        name: sorted(
            json.loads(msgspec.json.encode(list(words))),
            key=lambda word: [word.get(each) or "" for each in ("urn", "field", "slot", "name")],
        )
        for name, words in lists.items()
    }


def test_lists_show_the_same_values_reporters_authors_and_times(
    upgraded: Lumos, recorded: Recorded
) -> None:
    assert _listed(upgraded) == recorded["annotations"]


def test_an_export_has_the_same_datasets(
    upgraded: Lumos, recorded: Recorded, tmp_path: Path
) -> None:
    upgraded.snapshot.export(tmp_path / "all.json")
    assert json.loads((tmp_path / "all.json").read_text())["datasets"] == recorded["datasets"]


def test_retractions_leave_the_same_annotations(upgraded: Lumos, recorded: Recorded) -> None:
    people = upgraded.annotations
    for name in ("orders", "notes", "remote"):
        people.docs.remove(name, mine=True)
    people.docs.remove("orders", fields=["email"], mine=True)
    people.docs.remove("raw/clicks", fields=["id", "email"], mine=True)
    people.owners.assign("jane", "notes", type="DATA_STEWARD", remove=True)
    people.tags.remove("notes", "daily", mine=True)
    people.describe("dbt:shop", [])
    shown = {
        name: [{each: word.get(each) for each in SHOWN} for word in words]
        for name, words in _listed(upgraded).items()
    }
    assert shown == recorded["retracted"]


def test_what_a_data_source_reported_became_annotations_of_it(upgraded: Lumos) -> None:
    urn = "lumos://postgres/shop/public/items"
    (annotations,) = Store.open(upgraded.database).annotations.of([urn]).values()
    assert {(*key, each.value) for key, each in annotations["source"].items()} == {
        ("", "description", "", "Items of the database"),
        ("", "owner", "TECHNICAL_OWNER:group:clerks", ""),
        ("", "property", "postgres.comment", "Items of the database"),
        ("", "property", "postgres.owner", "clerks"),
    }
    with upgraded.database.reading() as connection:
        names = connection.exec_driver_sql("SELECT DISTINCT name FROM beside").scalars()
        assert not [name for name in names if name.startswith("said:")]
