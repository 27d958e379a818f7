"""What is said of OpenMetadata's own things is moved as it is, whatever it looks like."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs.live import OpenmetadataRig
from catalogs.servers.http import Server
from catalogs.servers.openmetadata import BOT
from catalogs.servers.openmetadata import Openmetadata as Stub
from catalogs.servers.spec import specification
from catalogs.test_lossless import restore, snapshot
from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntity, GlossaryTerm

from .native_inventory import Native
from .people import Estate

Opens = Callable[[], Estate]
REVENUE = "lumos:dashboard:boards/revenue"
SETTINGS = {"id": "7", "type": "x", "number_of_shards": 0, "deleted": True, "empty": {}}


@pytest.fixture
def estate() -> Iterator[Opens]:
    """Opens servers, each with nothing in it."""
    with ExitStack() as stack:

        def opened() -> Estate:
            stub = Stub(specification())
            return Estate(stub, stack.enter_context(Server(stub)))

        yield opened


def service(estate: Estate, kind: str, name: str, type: str) -> None:
    body = {"name": name, "serviceType": type, "description": "x"}
    estate.human("PUT", f"services/{kind}Services", body)


def moved(source: Estate, target: Estate, folder: Path) -> None:
    snapshot(source.catalog(), folder / "moved.jsonl")
    restore(folder / "moved.jsonl", target.catalog())


@pytest.mark.parametrize(
    ("kind", "type", "route", "said"),
    [
        ("pipeline", "Airflow", "pipelines", {"concurrency": 0}),
        ("database", "Postgres", "queries", {"query": "select 1", "duration": 0}),
        ("database", "Postgres", "queries", {"query": "select 1", "exclude_usage": False}),
        (
            "search",
            "ElasticSearch",
            "searchIndexes",
            {"fields": [], "searchIndexSettings": SETTINGS},
        ),
        (
            "search",
            "ElasticSearch",
            "searchIndexes",
            {"fields": [], "searchIndexSettings": {"id": "7", "type": "x"}},
        ),
        (
            "search",
            "ElasticSearch",
            "searchIndexes",
            {"fields": [], "searchIndexSettings": {"fullyQualifiedName": "ann", "type": "user"}},
        ),
    ],
)
def test_values_that_look_empty_or_like_others_are_values(
    estate: Opens, tmp_path: Path, kind: str, type: str, route: str, said: dict[str, Any]
) -> None:
    source, target = estate(), estate()
    service(source, kind, "home", type)
    source.human("PUT", route, {"name": "it", "service": "home", "description": "x", **said})
    moved(source, target, tmp_path)
    there = target.named(route, "home.it")
    assert {key: there.get(key) for key in said} == said


def test_properties_of_people_that_begin_like_those_of_lumos_are_moved(
    estate: Opens, tmp_path: Path
) -> None:
    source, target = estate(), estate()
    native = Native(source.human)
    native._declare("dashboard", "lumosity", "string")
    native._declare("dashboard", "many", "integer")
    said = {"lumosity": "bright", "many": 0}
    service(source, "dashboard", "boards", "Looker")
    body = {"name": "revenue", "service": "boards", "description": "x", "extension": said}
    source.human("PUT", "dashboards", body)
    moved(source, target, tmp_path)
    assert target.named("dashboards", "boards.revenue", "extension")["extension"] == said


@pytest.mark.parametrize(
    ("owners", "shown"),
    [
        (("lakers", "lost"), {("user", "lost")}),
        (("lakers",), {("team", "lakers")}),
        (("ann", "bob"), {("user", "ann"), ("user", "bob")}),
    ],
    ids=["a team and a user", "the team", "users"],
)
def test_owners_of_a_term_are_users_or_a_team_as_they_were(
    estate: Opens, owners: tuple[str, ...], shown: set[tuple[str, str]]
) -> None:
    source, target = estate(), estate()
    team = source.human("PUT", "teams", {"name": "lakers", "teamType": "Group"})
    source.human("PUT", "glossaries", {"name": "B", "description": "g"})
    body = {"name": "Net", "glossary": "B", "description": "n"}
    source.human("PUT", "glossaryTerms", {**body, "owners": [{"id": team["id"], "type": "team"}]})
    items = list(source.catalog().items())
    term = next(each for each in items if isinstance(each, GlossaryTerm))
    edited = msgspec.structs.replace(term, owners=owners, definition="By hand")
    put = [edited if each is term else each for each in items]
    assert list(target.catalog().put_items(put)) == []
    there = target.named("glossaryTerms", "B.Net", "owners")["owners"]
    assert {(each["type"], each["name"]) for each in there} == shown
    assert target.catalog().get_item(GlossaryTerm, "B.Net") == edited


def dashboard_with(estate: Estate, type: str, value: Any) -> None:
    Native(estate.human)._declare("dashboard", "code", type)
    service(estate, "dashboard", "boards", "Looker")
    extension = {} if value is None else {"extension": {"code": value}}
    body = {"name": "revenue", "service": "boards", "description": "x", **extension}
    estate.human("PUT", "dashboards", body)


@pytest.mark.parametrize("theirs", [None, 5])
def test_a_property_that_the_target_declares_otherwise_is_kept_and_the_rest_is_shown(
    estate: Opens, theirs: int | None
) -> None:
    source, target = estate(), estate()
    dashboard_with(source, "string", "forty")
    dashboard_with(target, "integer", theirs)
    source.change("dashboards", "boards.revenue", project="house")
    item = source.catalog().get_item(CatalogEntity, REVENUE)
    assert isinstance(item, CatalogEntity)
    assert list(target.catalog().put_items([item])) == []
    there = target.named("dashboards", "boards.revenue", "extension")
    assert there["project"] == "house"
    assert (there.get("extension") or {}).get("code") == theirs
    assert target.catalog().get_item(CatalogEntity, REVENUE) == item
    assert item in list(target.catalog().items())


def refused(**record: Any) -> CatalogEntity:
    said = {"description": "Of all shops", **record}
    return CatalogEntity(urn=REVENUE, raw={"openmetadata": said})


# The first is refused at once, the second when the dashboard is there already.
@pytest.mark.parametrize(
    "item",
    [
        refused(dashboardType="Nonsense"),
        refused(edges=[{"from": "openmetadata:chart:boards.bars", "source": "Nonsense"}]),
    ],
    ids=["whole", "half way"],
)
def test_nothing_stays_of_a_thing_that_was_refused(estate: Opens, item: CatalogEntity) -> None:
    target = estate()
    service(target, "dashboard", "boards", "Looker")
    target.human("PUT", "charts", {"name": "bars", "service": "boards", "description": "x"})
    catalog = target.catalog()
    before = list(catalog.items())
    (found,) = catalog.put_items([item])
    assert found.urn == REVENUE
    assert list(target.catalog().items()) == before
    assert target.catalog().get_item(CatalogEntity, REVENUE) is None
    assert "boards.revenue" not in OpenmetadataRig().state(target.stub)["dashboard"]


def test_a_migration_with_something_refused_is_taken_back_whole(
    estate: Opens, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENMETADATA_JWT_TOKEN", BOT)
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    target = estate()
    service(target, "dashboard", "boards", "Looker")
    before = OpenmetadataRig().state(target.stub)
    assert list(DatahubFile.at("estate.json").put_items([refused(dashboardType="Nonsense")])) == []
    name = target.catalog().name
    report = lumos.migration.migrate("datahub-file:estate.json", name)
    assert report.imported.sums.refused == 1
    lumos.migration.roll_back("datahub-file:estate.json", name)
    after = OpenmetadataRig().state(target.stub)
    assert {type: set(found) for type, found in after.items() if found} == {
        type: set(found) for type, found in before.items() if found
    }
