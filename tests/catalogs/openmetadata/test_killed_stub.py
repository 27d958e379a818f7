"""Imports into OpenMetadata that are killed after any call; a stub of it, and proved for it only."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs.live import openmetadata, openmetadata_of
from catalogs.sample_inventory import items, rich
from catalogs.servers.http import Server as WebServer
from catalogs.servers.openmetadata import BOT, Openmetadata
from lumos import Lumos
from lumos.catalogs.openmetadata.server import Server
from lumos.errors import CatalogRefused
from lumos.model.catalog import CatalogEntry, GlossaryTerm, Group, Job, SnapshotEntry, User
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.snapshots.format.writer import write_snapshot
from snapshots.sample_inventories import FACTS

from .people import ORDERS, Estate, table

LAKE = "lumos://s3/lake/raw/orders"
KINDS = (
    "glossaryTerm", "user", "team", "pipeline", "tag", "classification", "glossary", "container",
    "table", "topic", "databaseSchema", "database", "databaseService", "storageService",
    "messagingService", "pipelineService",
)  # fmt: skip
# Identifiers and moments.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|1[67][0-9]{11}")
FEW, ALL = 10, 1_000


class Killed(BaseException):
    """The process is no more."""


def small() -> tuple[list[CatalogEntry], list[SnapshotEntry]]:
    said: dict[str, Any] = {
        "documentation": Documentation(description="Orders"),
        "governance": Governance(tags=("pii",), terms=("Order", "Bare")),
        "ownership": Ownership(owners=(Owner(name="ann"), Owner(name="lake", kind="group"))),
    }
    lake = msgspec.structs.replace(table(LAKE, **said), platform="s3")
    return [table(ORDERS, **said), lake], [
        GlossaryTerm(name="Order", definition="a < b", display_name="An order"),
        GlossaryTerm(name="Silent"),
        User(name="ann", display_name="Ann", email="ann@example.com", title="Boss"),
        User(name="Quiet"),
        Group(name="lake", description="The lake", members=("ann", "bob")),
        Job(urn="lumos://airflow/load", name="load", platform="airflow", description="Loads"),
        Job(urn="lumos://airflow/rest", name="rest", platform="airflow"),
    ]


@pytest.fixture
def stub(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Openmetadata:
    monkeypatch.setenv("OPENMETADATA_JWT_TOKEN", BOT)
    return openmetadata_of(workplace)


class Killing:
    """Ends the process after so many writing calls have reached the server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        whole = Server._call
        self.written = 0

        def call(server: Server, method: str, *arguments: Any, **options: Any) -> Any:
            if self.written >= after:
                raise Killed
            answer = whole(server, method, *arguments, **options)
            self.written += method != "GET"
            if self.written >= after:
                raise Killed
            return answer

        monkeypatch.setattr(Server, "_call", call)


def held(stub: Openmetadata) -> dict[str, list[str]]:
    """What is there beside what came with the server."""
    fresh = Openmetadata()
    came = {kind: Counter(each["fullyQualifiedName"] for each in fresh.entities(kind)) for kind in KINDS}  # fmt: skip
    there = {kind: Counter(each["fullyQualifiedName"] for each in stub.entities(kind)) for kind in KINDS}  # fmt: skip
    return {kind: sorted(left) for kind in KINDS if (left := there[kind] - came[kind])}


def shown(stub: Openmetadata) -> dict[str, list[Any]]:
    """All that is told of items, but for what differs from one time to another."""
    told = ("fullyQualifiedName", "displayName", "description", "extension", "email", "deleted")
    return {
        kind: [
            [_ID.sub("", str(each.get(key))) for key in told]
            for each in sorted(stub.entities(kind), key=lambda each: each["fullyQualifiedName"])
        ]
        for kind in KINDS
    }


def exported(workplace: Path) -> tuple[list[CatalogEntry], list[bytes]]:
    catalog = openmetadata(workplace)
    return list(catalog.export()), sorted(map(msgspec.json.encode, catalog.items()))


def snapshot(estate: list[CatalogEntry], things: list[SnapshotEntry]) -> str:
    words = {"GlossaryTerm": "glossary", "User": "users", "Group": "groups", "Job": "jobs", "CatalogEntity": "others"}  # fmt: skip
    by_word: dict[str, list[Any]] = {word: [] for word in words.values()}
    for item in things:
        by_word[words[type(item).__name__]].append(item)
    write_snapshot("a.jsonl", FACTS, sorted(estate, key=lambda entry: entry.urn), **by_word)
    return "a.jsonl"


def load(workplace: Path, store: str, *, resume: bool = False) -> Any:
    lumos = Lumos(overrides={"storage.path": str(workplace / store)})
    name = openmetadata(workplace).name
    return lumos.snapshot.load("a.jsonl", platform=name, allow_dangling=True, resume=resume)


def roll_back(workplace: Path, store: str) -> Any:
    lumos = Lumos(overrides={"storage.path": str(workplace / store)})
    return lumos.snapshot.roll_back(platform=openmetadata(workplace).name)


def killed(workplace: Path, store: str, monkeypatch: pytest.MonkeyPatch, after: int) -> bool:
    with monkeypatch.context() as patch:
        Killing(patch, after)
        try:
            load(workplace, store)
        except Killed:
            return True
    return False


@pytest.fixture(
    params=["small", pytest.param("all of it", marks=pytest.mark.slow), pytest.param("rich", marks=pytest.mark.slow)]
)  # fmt: skip
def most(request: pytest.FixtureRequest, stub: Openmetadata) -> int:
    """After how many calls at most a process is killed, with a snapshot at hand to import."""
    snapshot(*((rich(), items()) if request.param == "rich" else small()))
    assert held(stub) == {}
    return FEW if request.param == "small" else ALL


def test_an_import_that_was_killed_is_taken_back_whole(
    stub: Openmetadata, workplace: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    after = 1
    while after <= most and killed(workplace, f"{after}.db", monkeypatch, after):
        roll_back(workplace, f"{after}.db")
        assert held(stub) == {}, f"after {after} calls"
        after += 1
    assert after > FEW


@pytest.mark.slow
def test_an_import_that_was_killed_ends_as_a_calm_one_and_is_taken_back_as_one(
    stub: Openmetadata, workplace: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    load(workplace, "calm.db")
    calm, there = exported(workplace), shown(stub)
    roll_back(workplace, "calm.db")
    assert held(stub) == {}
    after = 1
    while after <= most and killed(workplace, f"{after}.db", monkeypatch, after):
        load(workplace, f"{after}.db", resume=True)
        assert exported(workplace) == calm, f"after {after} calls"
        assert shown(stub) == there, f"after {after} calls"
        roll_back(workplace, f"{after}.db")
        assert held(stub) == {}, f"after {after} calls"
        after += 1
    assert after > FEW


def test_what_people_use_or_changed_stays_when_an_import_is_taken_back(
    stub: Openmetadata, workplace: Path
) -> None:
    snapshot(*small())
    load(workplace, "a.db")
    with WebServer(stub) as server:
        estate = Estate(stub, server)
        # Somebody has a table of their own, in a schema that Lumos made, with labels of Lumos.
        label = {"labelType": "Manual", "state": "Confirmed"}
        owners = [{"id": found(stub, "user", "bob"), "type": "user"}]
        tags = [
            {"tagFQN": "Lumos.pii", "source": "Classification", **label},
            {"tagFQN": "Lumos.Bare", "source": "Glossary", **label},
        ]
        body = {"name": "theirs", "databaseSchema": "postgres.shop.public", "owners": owners}
        column = {"name": "id", "dataType": "INT"}
        estate.human("PUT", "tables", {**body, "columns": [column], "tags": tags})
        pipeline = {"name": "theirs", "service": "lumos"}
        estate.human("PUT", "pipelines", pipeline)
    roll_back(workplace, "a.db")
    assert held(stub) == {
        "user": ["bob"],
        "glossary": ["Lumos"], "glossaryTerm": ["Lumos.Bare"],
        "classification": ["Lumos"], "tag": ["Lumos.pii"],
        "databaseService": ["postgres"], "database": ["postgres.shop"],
        "databaseSchema": ["postgres.shop.public"], "table": ["postgres.shop.public.theirs"],
        "pipelineService": ["lumos"], "pipeline": ["lumos.theirs"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("route", "left"),
    [
        ("tags/", {"classification": ["Lumos"], "tag": ["Lumos.pii"]}),
        ("services/databaseServices/", {"databaseService": ["postgres"]}),
    ],
)
def test_what_lumos_may_not_remove_stays_and_stops_nothing(
    stub: Openmetadata,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    route: str,
    left: dict[str, list[str]],
) -> None:
    snapshot(*small())
    load(workplace, "a.db")
    delete = Server.delete

    def denied(server: Server, path: str, **query: Any) -> bool:
        if path.startswith(route):
            raise CatalogRefused("openmetadata", status=403, key="x", variable="X")
        return delete(server, path, **query)

    monkeypatch.setattr(Server, "delete", denied)
    roll_back(workplace, "a.db")
    assert held(stub) == left


def found(stub: Openmetadata, kind: str, name: str) -> str:
    return next(each["id"] for each in stub.entities(kind) if each["name"] == name)
