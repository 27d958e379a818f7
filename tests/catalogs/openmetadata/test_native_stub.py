"""What people made in OpenMetadata is there again after a way through another catalog.

Two stubs of OpenMetadata stand for two servers, so this proves the adapters and the stubs;
`test_server.py` does the same with a real one.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from catalogs.contract_catalogs import CATALOGS, called
from catalogs.live import OpenmetadataRig
from catalogs.servers.faults import RESET_AFTER, RESET_BEFORE, TOO_MANY, UNAVAILABLE, Faults
from catalogs.servers.http import Server
from catalogs.servers.openmetadata import BOT
from catalogs.servers.openmetadata import Openmetadata as Stub
from catalogs.servers.spec import specification
from catalogs.test_lossless import by_name, restore, snapshot
from lumos import Lumos
from lumos.snapshots.format.reader import open_snapshot

from .native_inventory import Native, differences, told
from .people import Estate

WRITES = ("PUT", "PATCH", "POST", "DELETE")


@pytest.fixture
def estate() -> Iterator[Callable[[], Estate]]:
    """Opens servers, each with nothing in it."""
    with ExitStack() as stack:

        def opened() -> Estate:
            stub = Stub(specification())
            return Estate(stub, stack.enter_context(Server(stub)))

        yield opened


@pytest.mark.parametrize("via", ["datahub-file", "datahub"], ids=called)
def test_another_catalog_holds_what_it_says_it_holds(
    estate: Callable[[], Estate], tmp_path: Path, via: str
) -> None:
    source = estate()
    Native(source.human).make()
    between = CATALOGS[via](tmp_path)
    snapshot(source.catalog(), tmp_path / "first.jsonl")
    restore(tmp_path / "first.jsonl", between)
    held = by_name(map(between.item_as_stored, source.catalog().items()))
    assert by_name(between.items()) == held
    assert list(between.export()) == list(source.catalog().export())


def test_what_people_made_is_there_again(estate: Callable[[], Estate], tmp_path: Path) -> None:
    source, target = estate(), estate()
    Native(source.human).make()
    between = CATALOGS["local"](tmp_path)
    first = snapshot(source.catalog(), tmp_path / "first.jsonl")
    restore(tmp_path / "first.jsonl", between)
    assert snapshot(between, tmp_path / "second.jsonl") == first
    restore(tmp_path / "second.jsonl", target.catalog())
    assert "\n".join(differences(told(source.human), told(target.human))) == ""
    assert snapshot(target.catalog(), tmp_path / "third.jsonl") == first
    assert source.stub.violations == target.stub.violations == []


def test_a_term_comes_with_its_own_domain(estate: Callable[[], Estate], tmp_path: Path) -> None:
    source, target = estate(), estate()
    source.human("PUT", "domains", {"name": "Sales", "description": "d", "domainType": "Aggregate"})
    source.human("PUT", "glossaries", {"name": "B", "description": "g"})
    source.human("PUT", "glossaryTerms", {"name": "Net", "glossary": "B", "description": "n"})
    domain = {"id": source.named("domains", "Sales")["id"], "type": "domain"}
    source.change("glossaryTerms", "B.Net", domains=[domain])
    snapshot(source.catalog(), tmp_path / "moved.jsonl")
    restore(tmp_path / "moved.jsonl", target.catalog())
    term = target.named("glossaryTerms", "B.Net", "domains")
    assert [each["fullyQualifiedName"] for each in term["domains"]] == ["Sales"]


def _writes(target: Estate) -> list[Any]:
    return [request for request in target.server.requests if request.method in WRITES]


def test_a_second_move_writes_nothing(estate: Callable[[], Estate], tmp_path: Path) -> None:
    source, target = estate(), estate()
    Native(source.human).make()
    snapshot(source.catalog(), tmp_path / "first.jsonl")
    restore(tmp_path / "first.jsonl", target.catalog())
    done = len(_writes(target))
    restore(tmp_path / "first.jsonl", target.catalog())
    assert [(each.method, each.path) for each in _writes(target)[done:]] == []


@pytest.fixture
def lumos(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Lumos:
    monkeypatch.setenv("OPENMETADATA_JWT_TOKEN", BOT)
    return Lumos(overrides={"storage.path": str(workplace / "lumos.db")})


def _state(estate: Estate) -> Any:
    """All that is there, whoever wrote it last."""
    return {
        type: {
            name: {key: value for key, value in entity.items() if key != "updatedBy"}
            for name, entity in entities.items()
        }
        for type, entities in OpenmetadataRig().state(estate.stub).items()
    }


def _exported(estate: Estate, file: Path) -> Path:
    Native(estate.human).make()
    snapshot(estate.catalog(), file)
    return file


def test_an_import_of_all_that_is_taken_back_leaves_what_was_there_before(
    estate: Callable[[], Estate], lumos: Lumos, tmp_path: Path
) -> None:
    target = estate()
    file = _exported(estate(), tmp_path / "first.jsonl")
    target.human("PUT", "classifications", {"name": "Theirs", "description": "By hand"})
    target.human("PUT", "services/dashboardServices", {"name": "boards", "serviceType": "Looker"})
    before = _state(target)
    report = lumos.snapshot.load(file, platform=target.catalog().name)
    assert report.sums.refused == 0
    found = lumos.snapshot.diff(str(file), target.catalog().name).differences
    assert [each.key for each in found] == ["openmetadata:classification:Theirs"]
    lumos.snapshot.roll_back(platform=target.catalog().name)
    assert _state(target) == before
    assert target.stub.violations == []


def test_what_people_changed_since_stays(
    estate: Callable[[], Estate], lumos: Lumos, tmp_path: Path
) -> None:
    source, target = estate(), estate()
    file = _exported(source, tmp_path / "first.jsonl")
    name = target.catalog().name
    lumos.snapshot.load(file, platform=name)
    target.change("dashboards", "boards.revenue", description="By hand")
    target.change("glossaryTerms", "Business.Order", synonyms=["wish"])
    source.change("dashboards", "boards.revenue", project="house")
    source.change("glossaryTerms", "Business.Order", displayName="Order!")
    snapshot(source.catalog(), tmp_path / "second.jsonl")
    lumos.snapshot.load(tmp_path / "second.jsonl", platform=name)
    dashboard = target.named("dashboards", "boards.revenue")
    assert (dashboard["description"], dashboard["project"]) == ("By hand", "house")
    assert target.named("glossaryTerms", "Business.Order")["synonyms"] == ["wish"]
    done = len(_writes(target))
    lumos.snapshot.load(tmp_path / "second.jsonl", platform=name)
    assert [(each.method, each.path) for each in _writes(target)[done:]] == []


def test_what_waited_is_shown_by_a_later_run(estate: Callable[[], Estate], tmp_path: Path) -> None:
    """As after a process that was killed between things and datasets."""
    source, target = estate(), estate()
    with open_snapshot(_exported(source, tmp_path / "first.jsonl")) as opened:
        things = [*opened.terms(), *opened.users(), *opened.groups(), *opened.others()]
        assert list(target.catalog().put_items(things)) == []
        query = target.named("queries", "pg.top ten", "queryUsedIn")
        assert not query.get("queryUsedIn")
        # A query has no custom property that could hold its datasets meanwhile.
        assert without_queries(target) == without_queries(source)
        for _ in target.catalog().put_many(list(opened.datasets()), current={}):
            pass
    found = differences(told(source.human), told(target.human))
    assert [each for each in found if not each.startswith("queries pg.top ten: queryUsedIn")] == []


def without_queries(estate: Estate) -> list[Any]:
    items = estate.catalog().items()
    return [item for item in items if getattr(item, "kind", "") != "query"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_faults_are_outlasted(estate: Callable[[], Estate], tmp_path: Path, seed: int) -> None:
    source, target = estate(), estate()
    file = _exported(source, tmp_path / "first.jsonl")
    kinds = (TOO_MANY, UNAVAILABLE, RESET_BEFORE, RESET_AFTER)
    target.server.mishaps = Faults(seed, share=0.03, kinds=kinds)
    restore(file, target.catalog())
    target.server.mishaps = None
    assert "\n".join(differences(told(source.human), told(target.human))) == ""
    assert list(target.catalog().items()) == list(source.catalog().items())


def test_the_stub_names_dates_and_lists_things_as_the_real_server_was_seen_to(
    estate: Callable[[], Estate],
) -> None:
    server = estate()
    Native(server.human).make()
    assert server.named("dashboard/datamodels", 'boards.model."orders.view"')["sql"] == "select 1"
    assert server.named("pipelines", "flows.load")["startDate"] == 1704067200000
    alone = server.named("mlmodels", "models.churn", "dashboard")
    assert alone["dashboard"]["fullyQualifiedName"] == "boards.revenue"
    (listed,) = server.human("GET", "mlmodels?fields=dashboard")["data"]
    assert "dashboard" not in listed
    (index,) = server.human("GET", "searchIndexes?fields=tags")["data"]
    assert "tags" not in index["fields"][0]
    assert server.named("searchIndexes", "elastic.items")["fields"][0]["tags"]
