"""Snapshots of the store: what goes into them, and what stays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ColumnStatistics,
    Governance,
    Lineage,
    Owner,
    Ownership,
    Statistics,
    UpstreamEdge,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot
from snapshots.sample_inventories import CUSTOMERS, SIGNUPS, customers, everything, signups
from snapshots.stores import fill, write


@pytest.fixture
def lumos(stored: dict[str, object]) -> Lumos:
    return Lumos(overrides=stored)


def opened(path: Path | str) -> OpenSnapshot:
    with open_snapshot(path) as snapshot:
        return snapshot


def test_a_snapshot_of_the_store_holds_what_was_put_into_it(lumos: Lumos, workplace: Path) -> None:
    contents: dict[str, Any] = everything()
    fill(lumos, contents)
    report = lumos.snapshot.export("all.jsonl")
    snapshot = opened(workplace / "all.jsonl")
    assert list(snapshot.datasets()) == sorted(contents["datasets"], key=lambda entry: entry.urn)
    assert list(snapshot.jobs()) == contents["jobs"]
    assert [term.name for term in snapshot.terms()] == ["Client", "Customer", "Sales"]
    assert (report.counts.datasets, report.counts.users, report.scope) == (2, 2, "all")
    assert lumos.snapshot.validate("all.jsonl").problems == ()


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.jsonl", "a.jsonl.zst", "a.parquet"])
def test_the_same_state_gives_the_same_bytes_but_for_the_time(
    lumos: Lumos, workplace: Path, name: str
) -> None:
    fill(lumos, everything())
    first = lumos.snapshot.export(workplace / "first" / name)
    second = lumos.snapshot.export(workplace / "second" / name)
    assert first.hash == second.hash
    headers = [opened(report.file).header for report in (first, second)]
    assert headers[0].hashes == headers[1].hashes
    bodies = [list(opened(report.file).datasets()) for report in (first, second)]
    assert bodies[0] == bodies[1]


def test_a_folder_gets_a_file_that_is_called_after_the_time(lumos: Lumos, workplace: Path) -> None:
    fill(lumos, everything())
    report = lumos.snapshot.export("backups/")
    (file,) = (workplace / "backups").iterdir()
    assert report.file == f"backups/{file.name}"
    assert file.match("lumos_snapshot_????????_??????.yaml")
    assert lumos.snapshot.export("backups", ending=".jsonl").file.endswith(".jsonl")


def test_aspects_are_left_out_where_nobody_wants_them(lumos: Lumos, workplace: Path) -> None:
    fill(lumos, everything())
    lumos.snapshot.export(
        "few.json", include_cost=False, include_quality=False, include_statistics=False
    )
    snapshot = opened(workplace / "few.json")
    assert snapshot.header.omitted == ("cost", "quality", "statistics")
    for entry in snapshot.datasets():
        assert (entry.cost, entry.quality, entry.statistics) == (None, None, None)
    assert next(snapshot.jobs()).cost is None


@pytest.mark.parametrize("asked", [False, True])
def test_the_lowest_and_highest_values_only_leave_where_that_is_asked_for(
    lumos: Lumos, workplace: Path, asked: bool
) -> None:
    column = ColumnStatistics(null_count=3, minimum="17", maximum="4711")
    statistics = Statistics(columns={"id": column, "`e-mail`": column})
    entry = msgspec.structs.replace(customers(), statistics=statistics, governance=None)
    fill(lumos, {"datasets": [entry]})
    lumos.snapshot.export("a.json", include_ranges=asked)
    (found,) = opened(workplace / "a.json").datasets()
    assert found.statistics is not None
    expected = column if asked else ColumnStatistics(null_count=3)
    assert found.statistics.columns["id"] == expected
    assert found.statistics.columns["`e-mail`"] == ColumnStatistics(null_count=3), "it is private"
    assert ("4711" in (workplace / "a.json").read_text()) is asked


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param({"patterns": ["customers"]}, [CUSTOMERS], id="name"),
        pytest.param({"patterns": ["*"]}, [SIGNUPS, CUSTOMERS], id="all"),
        pytest.param({"patterns": ["FINANCE/*", "events.*"]}, [SIGNUPS, CUSTOMERS], id="patterns"),
        pytest.param({"tags": ["tier-1"]}, [CUSTOMERS], id="tag"),
        pytest.param({"tags": ["PII"]}, [CUSTOMERS], id="tag-of-a-column"),
        pytest.param({"owners": ["finance-data-team"]}, [CUSTOMERS], id="owner"),
        pytest.param({"owners": ["nobody"]}, [], id="nobody"),
        pytest.param({"patterns": ["events.*"], "tags": ["tier-1"]}, [], id="both"),
    ],
)
def test_datasets_are_selected_by_pattern_tag_and_owner(
    lumos: Lumos, workplace: Path, wanted: dict[str, Any], found: list[str]
) -> None:
    fill(lumos, everything())
    report = lumos.snapshot.export("some.json", **wanted)
    snapshot = opened(workplace / "some.json")
    assert report.scope == snapshot.header.scope == "selected"
    assert [entry.urn for entry in snapshot.datasets()] == found


def test_a_selection_takes_along_what_its_datasets_speak_of(lumos: Lumos, workplace: Path) -> None:
    fill(lumos, everything())
    lumos.snapshot.export("finance.json", patterns=["customers"])
    finance = opened(workplace / "finance.json")
    assert [term.name for term in finance.terms()] == ["Customer", "Sales"]
    assert [user.name for user in finance.users()] == ["jane.smith"]
    assert [group.name for group in finance.groups()] == ["finance-data-team"]
    assert len(list(finance.jobs())) == 1
    lumos.snapshot.export("none.json", patterns=["nothing"])
    none = opened(workplace / "none.json")
    assert [*none.terms(), *none.users(), *none.groups(), *none.jobs()] == []


def test_a_snapshot_since_another_one_holds_what_is_new_changed_or_gone(
    lumos: Lumos, workplace: Path
) -> None:
    store = fill(lumos, everything())
    base = lumos.snapshot.export("monday.jsonl")
    assert lumos.snapshot.export("same.jsonl", since="monday.jsonl").counts.datasets == 0
    changed = msgspec.structs.replace(customers(), governance=Governance(tags=("tier-2",)))
    new = msgspec.structs.replace(signups(), urn="lumos://kafka/new", lineage=None)
    write(store, changed, new, msgspec.structs.replace(signups(), deleted=True))
    report = lumos.snapshot.export("tuesday.jsonl", since="monday.jsonl")
    tuesday = opened(workplace / "tuesday.jsonl")
    assert report.scope == "incremental"
    assert tuesday.header.base is not None
    assert tuesday.header.base.hash == base.hash
    assert {entry.urn: entry.deleted for entry in tuesday.datasets()} == {
        CUSTOMERS: False,
        "lumos://kafka/new": False,
        SIGNUPS: True,
    }
    assert list(tuesday.users()) == []
    assert lumos.snapshot.validate("tuesday.jsonl").valid


def test_deleted_datasets_are_exported_as_deleted(lumos: Lumos, workplace: Path) -> None:
    fill(lumos, everything())
    lumos.snapshot.export("monday.jsonl")
    emptied = Lumos(overrides={"storage.path": str(workplace / "other.db")})
    fill(emptied, {"datasets": [signups()]})
    emptied.snapshot.export("tuesday.jsonl", since="monday.jsonl")
    assert list(opened(workplace / "tuesday.jsonl").datasets()) == [
        CatalogEntry(urn=CUSTOMERS, name="customers", platform="snowflake", deleted=True)
    ]


def test_a_snapshot_goes_on_from_a_whole_one_that_leaves_out_the_same(
    lumos: Lumos, workplace: Path
) -> None:
    fill(lumos, everything())
    lumos.snapshot.export("monday.jsonl", patterns=["customers"])
    with pytest.raises(MisuseError, match=r"omits the same aspects \(nothing\)"):
        lumos.snapshot.export("a.jsonl", since="monday.jsonl", include_cost=False)
    lumos.snapshot.export("tuesday.jsonl", since="monday.jsonl")
    assert opened(workplace / "tuesday.jsonl").header.selection is not None
    with pytest.raises(MisuseError, match="only has the changes"):
        lumos.snapshot.export("wednesday.jsonl", since="tuesday.jsonl")
    with pytest.raises(MisuseError, match=r"\.yaml"):
        lumos.snapshot.export("a.txt")


def test_the_store_is_compared_with_snapshots_in_any_mix(lumos: Lumos) -> None:
    store = fill(lumos, everything())
    lumos.snapshot.export("monday.yaml")
    for sides in (("local", "monday.yaml"), ("monday.yaml", "local"), ("local", "local")):
        report = lumos.snapshot.diff(*sides)
        assert report.summary.differences == 0
        assert (report.datasets.target, report.lineage_edges.target) == (2, 1)
    fewer = msgspec.structs.replace(
        customers(),
        schema=Schema(fields=(Field(name="customer_id", type=INT64, nullable=False, key=True),)),
        lineage=Lineage(upstream=(UpstreamEdge(urn="lumos://s3/elsewhere"),)),
        ownership=Ownership(owners=(Owner(name="new.one"),)),
        governance=Governance(tags=("pii",), terms=("Customer",)),
    )
    write(store, fewer)
    report = lumos.snapshot.diff("monday.yaml", "local")
    found = {(each.aspect, each.path, each.change, each.impact) for each in report.differences}
    assert ("schema", "`e-mail`", "removed", "breaking") in found
    assert ("lineage", f"upstream[{SIGNUPS}]", "removed", "breaking") in found
    assert ("governance", "compliance", "removed", "breaking") in found
    assert ("ownership", "owners[user new.one]", "added", "non-breaking") in found
    assert report.missing_tags == ("tier-1",)
    assert (report.lineage_edges.source, report.lineage_edges.target) == (1, 0)
    only = lumos.snapshot.diff("monday.yaml", "local", aspects=["ownership"])
    assert {each.aspect for each in only.differences} == {"ownership"}


def test_datasets_that_did_not_arrive_are_counted_with_their_edges(
    lumos: Lumos, workplace: Path
) -> None:
    fill(lumos, everything())
    lumos.snapshot.export("all.json")
    other = Lumos(overrides={"storage.path": str(workplace / "other.db")})
    fill(other, {"datasets": [signups()]})
    other.snapshot.export("few.json")
    report = lumos.snapshot.diff("all.json", "few.json")
    assert (report.datasets.source, report.datasets.target) == (2, 1)
    assert (report.lineage_edges.source, report.lineage_edges.target) == (1, 0)
    assert report.summary.breaking >= 1


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_parquet_snapshots_are_checked_and_compared_on_spark(workplace: Path) -> None:
    lumos = Lumos()
    store = fill(lumos, everything())
    lumos.snapshot.export("old.parquet")
    assert lumos.snapshot.validate("old.parquet", spark=True) == lumos.snapshot.validate(
        "old.parquet"
    )
    write(store, msgspec.structs.replace(customers(), ownership=None))
    lumos.snapshot.export("new.parquet")
    report = lumos.snapshot.diff_on_spark("old.parquet", "new.parquet", to="differences")
    assert (report.changed, report.added, report.removed, report.breaking) == (1, 0, 0, 2)
    assert (workplace / "differences" / "differences").is_dir()
    with pytest.raises(MisuseError, match="Name a new folder"):
        lumos.snapshot.diff_on_spark("old.parquet", "new.parquet", to="differences")


def test_a_dataset_that_only_left_the_selection_is_not_gone(lumos: Lumos, workplace: Path) -> None:
    store = fill(lumos, everything())
    lumos.snapshot.export("monday.jsonl", tags=["tier-1"])
    untagged = msgspec.structs.replace(customers(), governance=None)
    write(store, untagged)
    lumos.snapshot.export("tuesday.jsonl", since="monday.jsonl")
    assert list(opened(workplace / "tuesday.jsonl").datasets()) == []
    write(store, msgspec.structs.replace(untagged, deleted=True))
    lumos.snapshot.export("wednesday.jsonl", since="monday.jsonl")
    (gone,) = opened(workplace / "wednesday.jsonl").datasets()
    assert (gone.urn, gone.deleted) == (CUSTOMERS, True)


def test_a_snapshot_goes_on_only_from_one_of_the_same_platform(
    lumos: Lumos, workplace: Path
) -> None:
    fill(lumos, {"datasets": [signups()]})
    lumos.snapshot.export("monday.jsonl")
    (workplace / "estate.json").write_text("[]")
    with pytest.raises(MisuseError, match="is a snapshot of 'local'"):
        lumos.snapshot.export("a.jsonl", platform="datahub-file:estate.json", since="monday.jsonl")


MISSING = "datahub-file:estate.json"


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda lumos: lumos.snapshot.export("a.json", platform=MISSING), id="export"),
        pytest.param(lambda lumos: lumos.snapshot.diff(MISSING, "local"), id="source"),
        pytest.param(lambda lumos: lumos.snapshot.diff("local", MISSING), id="target"),
    ],
)
def test_a_catalog_that_is_not_there_is_not_read_as_an_empty_one(
    lumos: Lumos, workplace: Path, read: Callable[[Lumos], object]
) -> None:
    fill(lumos, {})
    with pytest.raises(MisuseError, match=r"there is no file estate\.json"):
        read(lumos)
    assert not (workplace / "a.json").exists()


def test_a_snapshot_is_not_written_over_what_it_is_taken_from(
    lumos: Lumos, workplace: Path
) -> None:
    fill(lumos, {"datasets": [signups()]})
    (workplace / "estate.json").write_text("[]")
    (workplace / "link.json").symlink_to("estate.json")
    for output in ("estate.json", "link.json"):
        with pytest.raises(MisuseError, match="the catalog itself"):
            lumos.snapshot.export(output, platform="datahub-file:estate.json")
    assert (workplace / "estate.json").read_text() == "[]"
    lumos.snapshot.export("monday.jsonl")
    with pytest.raises(MisuseError, match="--since"):
        lumos.snapshot.export("monday.jsonl", since="monday.jsonl")
