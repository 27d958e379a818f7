"""The same commands work with another catalog once two lines of the configuration are exchanged.

DataHub and OpenMetadata are stubs here: what is shown is that Lumos does the same over either, and
what it sends. What the catalogs themselves make of it is shown elsewhere, as far as it can be.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Server
from catalogs.servers.openmetadata import BOT, Openmetadata
from files import write_text

pytestmark = pytest.mark.usefixtures("spark")

CONFIGURATION = """
lumos_config:
  platform: {platform}

  platform_config:
    {section}

  sources:
    - type: file
      name: shop
      paths: [lake]
"""
# What may differ from one run to the next: times, durations, hashes, sizes of files.
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.:+Z]*|\d+\.\d+ s|hash [0-9a-f]+|[\d.]+ k?B"
)


class Catalog(NamedTuple):
    """A catalog as a configuration names it."""

    platform: str
    section: str
    # What the catalog says of itself in results.
    name: str

    @property
    def word(self) -> str:
        """The platform's name without the remark beside it."""
        return self.platform.partition("  #")[0]

    def configuration(self) -> str:
        return CONFIGURATION.format(platform=self.platform, section=self.section)


def lake(workplace: Path) -> None:
    """Two tables, as they are before anything is scanned."""
    shutil.rmtree(workplace / "lake", ignore_errors=True)
    write_text(workplace / "lake/orders/part-0.csv", ["id,amount,city,discount", "1,9.5,Bonn,0.1"])
    write_text(workplace / "lake/revenue/part-0.csv", ["city,total", "Bonn,9.5"])
    write_text(workplace / "lake/users/part-0.csv", ["id,mail", "1,a@b.example"])
    for name in ("bolts", "nuts"):
        write_text(workplace / f"lake/{name}/part-0.csv", [f"id,{name}", "1,2"])
    write_text(
        workplace / "models/revenue.sql",
        ["select city, sum(amount) as total from orders group by city"],
    )


COMMANDS: list[tuple[int, tuple[str, ...]]] = [
    (0, ("ingest",)),
    (0, ("list",)),
    (0, ("tag", "set", "orders", "pii", "--field", "city")),
    (0, ("tag", "set", "orders", "gold")),
    (0, ("term", "define", "Order", "--definition", "What somebody bought")),
    (0, ("term", "set", "orders", "Order")),
    (0, ("owner", "add", "jane.smith", "--email", "jane@shop.example")),
    (0, ("owner", "assign", "orders", "jane.smith")),
    (0, ("doc", "set", "orders", "Every order since 2023", "--domain", "Sales")),
    (0, ("property", "set", "orders", "tier=1")),
    (0, ("lineage", "ingest", "models")),
    (0, ("lineage", "show", "orders")),
    (0, ("impact", "orders", "--drop", "amount")),
]
AFTER_THE_CHANGE: list[tuple[int, tuple[str, ...]]] = [
    (0, ("ingest",)),
    (0, ("changes", "--limit", "20")),
    (0, ("history", "orders")),
    (0, ("version", "show", "orders")),
    (0, ("show", "orders")),
    (0, ("search", "orders")),
    (0, ("schema", "diff", "orders@1.0.0", "orders")),
    (0, ("diff", "--source", "local", "--target", "PLATFORM")),
    (0, ("export", "--platform", "PLATFORM", "--output", "backup.json")),
    (0, ("validate", "--input", "backup.json")),
    (0, ("import", "--input", "backup.json", "--platform", "PLATFORM")),
    (0, ("import", "--input", "backup.json", "--store", "second.db")),
    (0, ("diff", "--source", "PLATFORM", "--target", "local", "--store", "second.db")),
    (0, ("sync", "--all", "--output", "PLATFORM")),
]


def transcript(
    lumos: Callable[..., Any], workplace: Path, catalog: Catalog
) -> Iterator[tuple[tuple[str, ...], str]]:
    """What each command says, from the first scan to a comparison with the catalog."""
    for left in (".lumos", "backup.json", "second.db"):
        path = workplace / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for left in workplace.glob("second.*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    lake(workplace)
    (workplace / "lumos.yaml").write_text(catalog.configuration(), encoding="utf-8")
    yield from outputs(lumos, COMMANDS, catalog)
    (workplace / "lake/orders/part-0.csv").unlink()
    write_text(workplace / "lake/orders/part-1.csv", ["id,amount,city,zip", "x1,9.5,Bonn,53111"])
    shutil.rmtree(workplace / "lake/users")
    yield from outputs(lumos, AFTER_THE_CHANGE, catalog)


def outputs(
    lumos: Callable[..., Any], commands: list[tuple[int, tuple[str, ...]]], catalog: Catalog
) -> Iterator[tuple[tuple[str, ...], str]]:
    for code, words in commands:
        done = lumos(*(catalog.word if word == "PLATFORM" else word for word in words))
        assert (done.code, done.err) == (code, ""), (words, done.out)
        output = done.out.replace(catalog.name, "CATALOG").replace(catalog.word, "CATALOG")
        yield words, " ".join(_CHANGING.sub("...", output).split())


class Held(NamedTuple):
    """What a catalog itself has a place for, and holds there of one dataset."""

    columns: tuple[str, ...]
    column_tags: dict[str, list[str]]
    tags: list[str]
    terms: list[str]
    owners: list[str]
    description: str | None
    domain: str | None
    made_from: list[str]
    is_hidden: bool = False


EXPECTED = {
    "orders": Held(
        columns=("id", "amount", "city", "zip"),
        column_tags={"city": ["pii"]},
        tags=["gold"],
        terms=["Order"],
        owners=["jane.smith"],
        description="Every order since 2023",
        domain="Sales",
        made_from=[],
    ),
    "revenue": Held(("city", "total"), {}, [], [], [], None, None, made_from=["orders"]),
    "users": Held(("id", "mail"), {}, [], [], [], None, None, [], is_hidden=True),
    "bolts": Held(("id", "bolts"), {}, [], [], [], None, None, []),
    "nuts": Held(("id", "nuts"), {}, [], [], [], None, None, []),
}


def _last(urn: str) -> str:
    """The last part of a name in DataHub: of urn:li:tag:pii, or of a dataset's path."""
    return re.split(r"[/:]", urn.removesuffix(",PROD)"))[-1]


def held_by_datahub(gms: Gms) -> dict[str, Held]:
    found: dict[str, Held] = {}
    for urn, aspects in gms.state().items():
        if not urn.startswith("urn:li:dataset:"):
            continue
        fields = aspects["schemaMetadata"]["fields"]
        owners = aspects.get("ownership", {}).get("owners", [])
        upstreams = aspects.get("upstreamLineage", {}).get("upstreams", [])
        found[_last(urn)] = Held(
            columns=tuple(field["fieldPath"] for field in fields),
            column_tags={
                field["fieldPath"]: [_last(each["tag"]) for each in tags]
                for field in fields
                if (tags := field.get("globalTags", {}).get("tags"))
            },
            tags=[_last(each["tag"]) for each in aspects.get("globalTags", {}).get("tags", [])],
            terms=[
                _last(each["urn"]) for each in aspects.get("glossaryTerms", {}).get("terms", [])
            ],
            owners=[_last(each["owner"]) for each in owners],
            description=aspects["datasetProperties"].get("description"),
            domain=next(map(_last, aspects.get("domains", {}).get("domains", [])), None),
            made_from=[_last(each["dataset"]) for each in upstreams],
            is_hidden=aspects.get("status", {}).get("removed", False),
        )
    return found


@pytest.fixture
def gms(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Catalog, Gms]]:
    monkeypatch.setenv("DH_TOKEN", TOKEN)
    stub = Gms()
    with Server(stub) as server:
        section = f"datahub:\n      gms_server: {server.address}\n      token: ${{DH_TOKEN}}"
        yield Catalog("datahub", section, f"datahub:{server.address}"), stub


@pytest.fixture
def om(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Catalog, Openmetadata]]:
    monkeypatch.setenv("OM_TOKEN", BOT)
    stub = Openmetadata()
    with Server(stub) as server:
        section = f"openmetadata:\n      server: {server.address}\n      auth_token: ${{OM_TOKEN}}"
        platform = "openmetadata  # was: datahub"
        yield Catalog(platform, section, f"openmetadata:{server.address}"), stub


def held_by_openmetadata(stub: Openmetadata) -> dict[str, Held]:
    containers = {each["id"]: each for each in stub.entities("container")}
    names = {id: each["name"].rpartition("/")[2] for id, each in containers.items()}
    return {
        names[id]: Held(
            columns=tuple(column["name"] for column in each["dataModel"]["columns"]),
            column_tags={
                column["name"]: [label["name"] for label in column["tags"]]
                for column in each["dataModel"]["columns"]
                if column["tags"]
            },
            tags=[label["name"] for label in each["tags"] if label["source"] == "Classification"],
            terms=[label["name"] for label in each["tags"] if label["source"] == "Glossary"],
            owners=[owner["name"] for owner in each["owners"]],
            description=each.get("description"),
            domain=next((domain["name"] for domain in each["domains"]), None),
            made_from=[names[source] for source, target in stub.estate.edges if target == id],
            is_hidden=each["deleted"],
        )
        for id, each in containers.items()
        # A bucket or first folder holds no data of its own; what is below `lumos` are no datasets.
        if "dataModel" in each
    }


def test_the_same_commands_work_with_either_catalog(
    lumos: Any, workplace: Path, gms: tuple[Catalog, Gms], om: tuple[Catalog, Openmetadata]
) -> None:
    with_datahub = dict(transcript(lumos, workplace, gms[0]))
    with_openmetadata = dict(transcript(lumos, workplace, om[0]))
    assert with_openmetadata == with_datahub
    assert with_datahub[("diff", "--source", "local", "--target", "PLATFORM")].endswith(
        "Nothing differs in 4 datasets and 1 lineage edge."
    )
    assert held_by_datahub(gms[1]) == EXPECTED
    assert held_by_openmetadata(om[1]) == EXPECTED
