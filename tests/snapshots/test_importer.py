"""Snapshots come into the store and into files: merged, told of, and with a way back."""

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.model.catalog import CatalogEntry, GlossaryTerm
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
    Versioning,
    VersionRecord,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.importer import InvalidSnapshot
from recorded_lake import RecordedLake
from snapshots.sample_inventories import (
    CUSTOMERS,
    FACTS,
    NOON,
    SIGNUPS,
    customers,
    everything,
    many,
    signups,
)
from snapshots.stores import fill, write

ORDERS = "lumos://file/lake/orders"
NARROW = Schema(fields=(Field(name="id", type=INT64),))
WIDE = Schema(fields=(Field(name="id", type=INT64), Field(name="city", type=STRING)))


@pytest.fixture
def lumos(stored: dict[str, object]) -> Lumos:
    return Lumos(overrides=stored)


@pytest.fixture(params=["local", "datahub-file:estate.json"])
def platform(request: pytest.FixtureRequest) -> str:
    """Each catalog that snapshots can be imported into."""
    return str(request.param)


def snapshot(*entries: CatalogEntry, file: str = "snapshot.jsonl", **facts: Any) -> str:
    write_snapshot(file, msgspec.structs.replace(FACTS, **facts), entries)
    return file


def orders(**aspects: Any) -> CatalogEntry:
    return CatalogEntry(urn=ORDERS, name="orders", platform="file", format="parquet", **aspects)


def portable() -> CatalogEntry:
    """A dataset with all aspects, and nothing that only one catalog knows."""
    return msgspec.structs.replace(customers(), raw={})


def edited(
    lumos: Lumos, platform: str, urn: str, edit: Callable[[CatalogEntry], CatalogEntry]
) -> None:
    """Somebody changes a dataset in the catalog by hand."""
    if platform == "local":
        (entry,) = [each for each in held(lumos, platform) if each.urn == urn]
        write(fill(lumos, {}), edit(entry))
        return
    from lumos.catalogs.datahub.file_platform import DatahubFile

    catalog = DatahubFile.at(platform.partition(":")[2])
    found = catalog.get(urn)
    assert found is not None
    catalog.put(edit(found))


def held(lumos: Lumos, platform: str) -> list[CatalogEntry]:
    """All datasets that a catalog holds."""
    from lumos.snapshots.format.reader import open_snapshot

    lumos.snapshot.export("held.jsonl", platform=platform)
    with open_snapshot("held.jsonl") as opened:
        return list(opened.datasets())


def one(lumos: Lumos, platform: str, urn: str = ORDERS) -> CatalogEntry:
    (found,) = [entry for entry in held(lumos, platform) if entry.urn == urn]
    return found


def test_a_snapshot_comes_into_another_store_without_loss(lumos: Lumos, workplace: Path) -> None:
    fill(lumos, everything())
    exported = lumos.snapshot.export("first.json")
    other = Lumos(overrides={"storage.path": str(workplace / "other.db")})
    report = other.snapshot.load("first.json")
    assert report.sums.tally("datasets").created == 2
    assert other.snapshot.export("second.json").hash == exported.hash


def test_importing_again_changes_nothing(lumos: Lumos, platform: str) -> None:
    file = snapshot(*many(12))
    assert lumos.snapshot.load(file, platform=platform).sums.tally("datasets").created == 12
    before = held(lumos, platform)
    events = list(lumos.changes().events) if platform == "local" else []
    again = lumos.snapshot.load(file, platform=platform)
    assert again.sums.tally("datasets").unchanged == again.sums.tally("datasets").total == 12
    assert held(lumos, platform) == before
    assert (list(lumos.changes().events) if platform == "local" else []) == events


def test_a_trial_writes_nothing_and_shows_what_would_happen(
    lumos: Lumos, platform: str, workplace: Path
) -> None:
    file = snapshot(*many(3))
    before = sorted(path.name for path in workplace.iterdir())
    report = lumos.snapshot.try_load(file, platform=platform)
    assert (report.dry_run, report.sums.tally("datasets").created) == (True, 3)
    assert [change.change for change in report.changes] == ["created"] * 3
    assert sorted(path.name for path in workplace.iterdir()) == before
    lumos.snapshot.load(file, platform=platform)
    first = next(many(1))
    governance = Governance(tags=("new",))
    changed = snapshot(msgspec.structs.replace(first, governance=governance), file="b.jsonl")
    report = lumos.snapshot.try_load(changed, platform=platform)
    (change,) = report.changes
    assert (change.change, "governance" in change.aspects) == ("changed", True)
    assert one(lumos, platform, first.urn).governance is None


def test_what_people_edited_stays_and_what_the_snapshot_no_longer_has_goes(
    lumos: Lumos, platform: str
) -> None:
    first = orders(
        governance=Governance(tags=("ours", "both")),
        ownership=Ownership(owners=(Owner(name="ann"),)),
        documentation=Documentation(description="old words"),
        properties={"a": "1"},
    )
    lumos.snapshot.load(snapshot(first), platform=platform)
    edited(
        lumos,
        platform,
        ORDERS,
        lambda entry: msgspec.structs.replace(
            entry,
            governance=Governance(tags=("ours", "both", "theirs")),
            documentation=Documentation(description="words of a person"),
        ),
    )
    second = orders(
        governance=Governance(tags=("both", "new")),
        documentation=Documentation(description="new words"),
    )
    report = lumos.snapshot.load(snapshot(second, file="b.jsonl"), platform=platform)
    found = one(lumos, platform)
    assert found.governance is not None
    assert set(found.governance.tags) == {"both", "theirs", "new"}
    assert found.documentation == Documentation(description="words of a person")
    assert (found.ownership, found.properties) == (None, None)
    (conflict,) = report.conflicts
    assert (conflict.path, conflict.ours) == ("documentation.description", "new words")


def test_aspects_that_a_snapshot_leaves_out_on_purpose_stay(lumos: Lumos, platform: str) -> None:
    lumos.snapshot.load(snapshot(portable()), platform=platform, allow_dangling=True)
    bare = msgspec.structs.replace(portable(), cost=None, quality=None)
    file = snapshot(bare, file="b.jsonl", omitted=("cost", "quality"))
    lumos.snapshot.load(file, platform=platform, allow_dangling=True)
    assert one(lumos, platform, CUSTOMERS).cost == customers().cost
    lumos.snapshot.load(snapshot(bare, file="c.jsonl"), platform=platform, allow_dangling=True)
    assert one(lumos, platform, CUSTOMERS).cost is None


def test_a_snapshot_since_another_one_takes_gone_datasets_along(
    lumos: Lumos, platform: str
) -> None:
    lumos.snapshot.load(snapshot(*many(3), file="a.jsonl"), platform=platform)
    first, second, third = many(3)
    gone = CatalogEntry(urn=second.urn, name=second.name, platform=second.platform, deleted=True)
    unknown = CatalogEntry(urn="lumos://s3/never/there", name="there", platform="s3", deleted=True)
    changed = msgspec.structs.replace(third, governance=Governance(tags=("x",)))
    file = snapshot(gone, unknown, changed, file="b.jsonl", scope="incremental")
    tally = lumos.snapshot.load(file, platform=platform).sums.tally("datasets")
    assert (tally.deleted, tally.changed, tally.unchanged) == (1, 1, 1)
    found = {entry.urn: entry for entry in held(lumos, platform)}
    assert found[second.urn].deleted
    assert found[second.urn].schema == second.schema
    assert found[first.urn] == one(lumos, platform, first.urn)
    assert found[third.urn].governance == Governance(tags=("x",))
    assert unknown.urn not in found


def test_words_and_people_are_merged_field_by_field(lumos: Lumos, workplace: Path) -> None:
    def glossary(file: str, **facts: str) -> str:
        write_snapshot(file, FACTS, [], glossary=[GlossaryTerm(name="Customer", **facts)])
        return file

    lumos.snapshot.load(glossary("a.json", definition="pays", domain="Sales"))
    fill(lumos, {"glossary": [GlossaryTerm(name="Customer", definition="mine", domain="Sales")]})
    report = lumos.snapshot.load(glossary("b.json", definition="pays us", domain="Finance"))
    lumos.snapshot.export("c.json")
    text = (workplace / "c.json").read_text()
    assert '"definition":"mine"' in text
    assert '"domain":"Finance"' in text
    assert [conflict.path for conflict in report.conflicts] == ["definition"]


def test_history_comes_along_with_its_schemas(seen: RecordedLake, workplace: Path) -> None:
    seen.see("orders", "id INT64")
    seen.see("orders", "id INT64\ncity STRING")
    seen.see("orders", "id INT64\ncity STRING")
    seen.see("orders", "id INT64")
    seen.lumos.snapshot.export("orders.yaml")
    other = Lumos(overrides={"storage.path": str(workplace / "other.db")})
    given: list[ChangeEvent] = []
    other.on_change(given.append)
    other.snapshot.load("orders.yaml")
    before, after = (each.history("orders") for each in (seen.lumos, other))
    assert [version.schema_version for version in after.versions] == ["2.0.0", "1.1.0", "1.0.0"]
    for old, new in zip(before.versions, after.versions, strict=True):
        assert (new.schema, new.changes, new.timestamp, new.cloud_version) == (
            old.schema, old.changes, old.timestamp, old.cloud_version,
        )  # fmt: skip
    assert [(event.type, event.cause) for event in given] == [(EventType.CREATED, "import")]
    assert given[0].cloud_version == "S-4"
    log = [(event.type, event.schema_version, event.summary) for event in other.changes().events]
    assert log == [
        (EventType.CREATED, "2.0.0", "import of orders.yaml"),
        (EventType.SCHEMA_CHANGED, "2.0.0", "1 field removed: city"),
        (EventType.SCHEMA_CHANGED, "1.1.0", "1 field added: city"),
        (EventType.SCHEMA_CHANGED, "1.0.0", "first seen"),
    ]
    assert other.version.show("orders").cloud_version == "S-4"
    exported = [each.snapshot.export("again.json").hash for each in (seen.lumos, other)]
    assert exported[0] == exported[1]


def test_versions_of_which_only_words_are_known_are_shown(lumos: Lumos, workplace: Path) -> None:
    (workplace / "founding.yaml").write_text(
        """
lumos_snapshot:
  version: "1.0.0"
  exported_at: "2024-01-15T10:30:00Z"
  source_platform: datahub
  metadata: {total_datasets: 1, total_lineage_relationships: 0, export_scope: all}
  datasets:
    - urn: "urn:li:dataset:(csv,user_data,PROD)"
      name: user_data
      platform: csv
      schema: {fields: [{name: user_id, type: string, nullable: false}]}
      versioning:
        cloud_version: S-312
        schema_version: 2.0.0
        version_history:
          - {version: S-311, schema_version: 1.0.0, timestamp: "2024-01-01T00:00:00Z",
             changes: [Added email field]}
          - {version: S-312, schema_version: 2.0.0, timestamp: "2024-01-15T09:00:00Z",
             changes: [Added phone_number field]}
"""
    )
    lumos.snapshot.load("founding.yaml")
    shown = lumos.version.show("user_data")
    assert (shown.cloud_version, shown.schema_version) == ("S-312", "2.0.0")
    assert [(each.version, each.changes) for each in shown.version_history] == [
        ("S-311", ("Added email field",)),
        ("S-312", ("Added phone_number field",)),
    ]
    assert [each.schema_version for each in lumos.history("user_data").versions] == ["2.0.0"]


def test_two_imports_into_one_catalog_do_not_run_at_once(lumos: Lumos, platform: str) -> None:
    file = snapshot(*many(2))
    name = lumos.snapshot._catalogs.named(platform).name if platform != "local" else platform
    store = fill(lumos, {})
    with (
        store.lock(f"import into {name}"),
        pytest.raises(LumosError, match="Another import into"),
    ):
        lumos.snapshot.load(file, platform=platform)
    assert lumos.snapshot.load(file, platform=platform).sums.tally("datasets").created == 2


def test_what_a_scan_saw_counts_and_the_rest_is_merged(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64\nprice FLOAT64")
    entry = orders(
        schema=NARROW,
        ownership=Ownership(owners=(Owner(name="ann"),)),
        documentation=Documentation(description="what was bought"),
    )
    report = seen.lumos.snapshot.load(snapshot(entry))
    assert report.sums.seen_here == 1
    found = one(seen.lumos, "local")
    assert found.schema is not None
    assert [field.name for field in found.schema.fields] == ["id", "price"]
    assert found.ownership == entry.ownership
    assert found.versioning is not None
    assert (found.versioning.cloud_version, found.versioning.schema_version) == ("S-2", "1.0.0")
    (event, _) = seen.lumos.changes().events
    assert (event.type, event.cause) == (EventType.METADATA_CHANGED, "import")
    assert "ownership" in event.summary
    # A scan that finds nothing new leaves all as it is.
    gone = CatalogEntry(urn=ORDERS, name="orders", platform="file", deleted=True)
    seen.lumos.snapshot.load(snapshot(gone, file="b.jsonl", scope="incremental"))
    assert not one(seen.lumos, "local").deleted


def test_a_scan_goes_on_from_the_versions_that_were_imported(seen: RecordedLake) -> None:
    versioning = Versioning(cloud_version="S-312", schema_version="2.4.0")
    seen.lumos.snapshot.load(snapshot(orders(schema=NARROW, versioning=versioning)))
    event = seen.see("orders", "id INT64\ncity STRING")
    assert (event.type, event.cloud_version, event.schema_version) == (
        EventType.SCHEMA_CHANGED, "S-313", "2.5.0",
    )  # fmt: skip
    found = one(seen.lumos, "local")
    assert found.versioning is not None
    assert [record.schema_version for record in found.versioning.history] == ["2.4.0", "2.5.0"]


def record(number: int, version: str, **facts: Any) -> VersionRecord:
    at = NOON.replace(year=2023, day=number)
    return VersionRecord(cloud_version=f"S-{number}", schema_version=version, at=at, **facts)


def test_versions_go_on_from_whoever_counted_further(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    given = Versioning(
        cloud_version="S-20",
        schema_version="3.0.0",
        history=(record(4, "2.0.0", schema=NARROW), record(9, "3.0.0", schema=WIDE)),
    )
    seen.lumos.snapshot.load(snapshot(orders(schema=WIDE, versioning=given)))
    found = one(seen.lumos, "local").versioning
    assert found is not None
    # The scan's own schema has a column less than the one that was told last.
    assert (found.cloud_version, found.schema_version) == ("S-21", "4.0.0")
    assert [each.schema_version for each in found.history] == ["2.0.0", "3.0.0", "1.0.0", "4.0.0"]
    behind = Versioning(cloud_version="S-3", schema_version="1.5.0", history=(record(2, "1.5.0"),))
    entry = orders(schema=WIDE, versioning=behind, governance=Governance(tags=("x",)))
    seen.lumos.snapshot.load(snapshot(entry, file="b.jsonl"))
    found = one(seen.lumos, "local").versioning
    assert found is not None
    assert (found.cloud_version, found.schema_version) == ("S-22", "4.0.0")
    assert found.history[0].schema_version == "1.5.0"


def test_changes_that_an_import_makes_are_events_with_their_verdict(lumos: Lumos) -> None:
    given: list[ChangeEvent] = []
    lumos.on_change(given.append)
    lumos.snapshot.load(snapshot(orders(schema=WIDE)))
    lumos.snapshot.load(snapshot(orders(schema=NARROW), file="b.jsonl"))
    created, changed = given
    assert (created.type, created.summary) == (EventType.CREATED, "import of snapshot.jsonl")
    assert (changed.type, changed.breaking) == (EventType.SCHEMA_CHANGED, True)
    assert changed.summary == "1 field removed: city; import of b.jsonl"
    assert (changed.cloud_version, changed.schema_version) == ("S-2", "2.0.0")
    assert [version.schema_version for version in lumos.history("orders").versions] == [
        "2.0.0",
        "1.0.0",
    ]


def test_a_renamed_dataset_is_not_founded_again_under_its_old_name(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.lumos.snapshot.export("before.jsonl")
    seen.see("sales", "id INT64", renamed_from="orders")
    report = seen.lumos.snapshot.load("before.jsonl")
    assert [entry.urn for entry in held(seen.lumos, "local")] == ["lumos://file/lake/sales"]
    assert "was renamed to lumos://file/lake/sales in the store" in report.remarks[0]


def test_taking_an_import_back_restores_what_was_there(lumos: Lumos, platform: str) -> None:
    lumos.snapshot.load(snapshot(*many(5)), platform=platform)
    before = held(lumos, platform)
    wider = (
        msgspec.structs.replace(entry, schema=WIDE, governance=Governance(tags=("x",)))
        for entry in many(9)
    )
    file = snapshot(*wider, file="b.jsonl")
    lumos.snapshot.load(file, platform=platform)
    assert held(lumos, platform) != before
    # An import that changes nothing does not stand in the way.
    lumos.snapshot.load(file, platform=platform)
    report = lumos.snapshot.roll_back(file, platform=platform)
    assert (report.restored, report.erased, report.kept) == (5, 4, ())
    assert held(lumos, platform) == before
    with pytest.raises(MisuseError, match="no import into"):
        lumos.snapshot.roll_back(platform=platform)
    lumos.snapshot.load(file, platform=platform)
    assert len(held(lumos, platform)) == 9


def test_taking_an_import_back_keeps_what_was_edited_since(lumos: Lumos, platform: str) -> None:
    first = orders(schema=NARROW, governance=Governance(tags=("a",)))
    lumos.snapshot.load(snapshot(first), platform=platform)
    second = orders(schema=WIDE, governance=Governance(tags=("b",)))
    new = next(many(1))
    lumos.snapshot.load(snapshot(second, new, file="b.jsonl"), platform=platform)
    words = Documentation(description="of a person")
    for urn in (ORDERS, new.urn):
        edited(
            lumos, platform, urn, lambda entry: msgspec.structs.replace(entry, documentation=words)
        )
    report = lumos.snapshot.roll_back(platform=platform)
    assert [each.aspects for each in report.kept] == [("documentation",), ("documentation",)]
    found = one(lumos, platform)
    assert (found.schema, found.governance, found.documentation) == (
        NARROW, Governance(tags=("a",)), words,
    )  # fmt: skip
    left = one(lumos, platform, new.urn)
    assert (left.schema, left.documentation) == (None, words)


def test_taking_an_import_back_leaves_what_a_scan_saw_since(seen: RecordedLake) -> None:
    entry = orders(schema=NARROW, ownership=Ownership(owners=(Owner(name="ann"),)))
    seen.lumos.snapshot.load(snapshot(entry))
    seen.see("orders", "id INT64\ncity STRING")
    seen.lumos.snapshot.roll_back()
    found = one(seen.lumos, "local")
    assert found.schema is not None
    assert [field.name for field in found.schema.fields] == ["id", "city"]
    assert found.location is not None
    assert found.ownership is None


def test_an_import_that_was_rolled_back_is_reported(lumos: Lumos) -> None:
    lumos.snapshot.load(snapshot(orders(schema=NARROW)))
    lumos.snapshot.roll_back()
    gone, created = lumos.changes().events
    assert (gone.type, created.type) == (EventType.DELETED, EventType.CREATED)
    assert "rolled back" in gone.summary
    assert lumos.list().datasets == ()
    assert lumos.search("orders").results == ()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        pytest.param(lambda text: text[: len(text) // 2], "line 21, column", id="truncated"),
        pytest.param(lambda text: text.replace("customers", "kustomers"), "hash", id="edited"),
        pytest.param(
            lambda text: text.replace('"format_version":"1.1"', '"format_version":"7.0"'),
            "pip install --upgrade lumos",
            id="newer",
        ),
        pytest.param(lambda _: '{"type": "object"}', "Not a Lumos snapshot", id="other-kind"),
    ],
)
def test_a_snapshot_that_is_not_sound_is_refused_before_anything_is_written(
    lumos: Lumos,
    platform: str,
    workplace: Path,
    damage: Callable[[str], str],
    complaint: str,
) -> None:
    fill(lumos, everything())
    lumos.snapshot.export("sound.json")
    (workplace / "bad.json").write_text(damage((workplace / "sound.json").read_text()))
    with pytest.raises(InvalidSnapshot, match=complaint):
        lumos.snapshot.load("bad.json", platform=platform)
    assert not (workplace / "estate.json").exists()
    with pytest.raises(MisuseError, match="no import"):
        lumos.snapshot.roll_back(platform=platform)


_BOMB = "\n".join(
    [
        "format: lumos-snapshot",
        "a: &a [x, x, x, x, x, x, x, x, x]",
        *(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in pairwise("abcdefghi")),
    ]
)


def test_dangerous_and_doubled_snapshots_are_refused_too(
    lumos: Lumos, platform: str, workplace: Path
) -> None:
    (workplace / "bomb.yaml").write_text(_BOMB)
    write_snapshot("folder.parquet", FACTS, many(2))
    manifest = workplace / "folder.parquet" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("datasets-", "../../datasets-"))
    document = json.loads(Path(snapshot(*many(2), file="twice.json")).read_text())
    document["datasets"].append(document["datasets"][0])
    (workplace / "twice.json").write_text(json.dumps(document))
    for name in ("bomb.yaml", "folder.parquet", "twice.json"):
        with pytest.raises(InvalidSnapshot, match=name):
            lumos.snapshot.load(name, platform=platform)
    assert not (workplace / "estate.json").exists()


def test_a_catalog_that_cannot_be_read_leaves_no_import_behind(
    lumos: Lumos, workplace: Path
) -> None:
    platform = "datahub-file:estate.json"
    (workplace / "estate.json").write_text("[{")
    with pytest.raises(LumosError, match=r"estate\.json") as refused:
        lumos.snapshot.load(snapshot(*many(2)), platform=platform)
    assert "--resume" not in str(refused.value)
    (workplace / "estate.json").unlink()
    assert lumos.snapshot.load("snapshot.jsonl", platform=platform).sums.tally("datasets").created


def test_lineage_that_leads_nowhere_is_taken_only_where_somebody_says_so(lumos: Lumos) -> None:
    lineage = Lineage(upstream=(UpstreamEdge(urn="lumos://s3/elsewhere"),))
    file = snapshot(orders(lineage=lineage))
    with pytest.raises(InvalidSnapshot, match=r"lineage.upstream\[0\].*--allow-dangling"):
        lumos.snapshot.load(file)
    assert lumos.snapshot.load(file, allow_dangling=True).sums.tally("datasets").created == 1


def test_an_import_that_fails_says_how_to_go_on_and_nothing_else_may_begin(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lumos.catalogs.datahub.file_platform import DatahubFile

    platform = "datahub-file:estate.json"
    put = DatahubFile.put

    def refuse(self: DatahubFile, entry: CatalogEntry) -> Any:
        if entry.urn.endswith("3"):
            raise LumosError("The catalog is tired.")
        return put(self, entry)

    file = snapshot(*many(6))
    with monkeypatch.context() as patched:
        patched.setattr(DatahubFile, "put", refuse)
        with pytest.raises(
            LumosError, match=r"t0000003 was refused: .* tired\. The import is not.*--resume"
        ):
            lumos.snapshot.load(file, platform=platform)
    assert not Path("estate.json").exists()
    with pytest.raises(MisuseError, match="was not finished"):
        lumos.snapshot.load(file, platform=platform)
    other = snapshot(*many(2), file="other.jsonl")
    with pytest.raises(MisuseError, match="of another snapshot"):
        lumos.snapshot.load(other, platform=platform, resume=True)
    report = lumos.snapshot.load(file, platform=platform, resume=True)
    assert (report.resumed, report.sums.tally("datasets").created) == (True, 6)
    assert len(held(lumos, platform)) == 6
    # Where nothing waits, it is an import as any other.
    again = lumos.snapshot.load(file, platform=platform, resume=True)
    assert again.sums.tally("datasets").unchanged == 6


def test_what_a_catalog_has_no_place_for_is_listed(lumos: Lumos) -> None:
    fill(lumos, {"datasets": [portable(), signups()]})
    lumos.snapshot.export("a.json")
    report = lumos.snapshot.load("a.json", platform="datahub-file:estate.json")
    assert report.sums.held["cost"] == {"properties": 1}
    assert report.sums.held["schema"]
    diff = lumos.snapshot.diff("a.json", "datahub-file:estate.json")
    assert diff.summary.differences == 0
    assert (diff.datasets.target, diff.lineage_edges.target) == (2, 1)
    assert {CUSTOMERS, SIGNUPS} == {entry.urn for entry in held(lumos, "datahub-file:estate.json")}


def test_files_of_one_catalog_are_the_same_wherever_they_are_named_from(
    lumos: Lumos, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workplace / snapshot(*many(2))
    lumos.snapshot.load(file, platform="datahub-file:estate.json")
    (workplace / "below").mkdir()
    monkeypatch.chdir(workplace / "below")
    report = lumos.snapshot.roll_back(platform="datahub-file:../estate.json")
    assert report.erased == 2


def test_the_configured_catalog_is_named_by_its_kind(lumos: Lumos, workplace: Path) -> None:
    lumos.snapshot.load(snapshot(*many(2)), platform="datahub-file:estate.json")
    overrides = {"platform": "datahub-file:estate.json"}
    configured = Lumos(overrides=overrides)
    report = configured.snapshot.export("again.jsonl", platform="datahub-file")
    assert report.counts.datasets == 2
    with pytest.raises(MisuseError, match="needs the path"):
        lumos.snapshot.export("again.jsonl", platform="datahub-file")
    assert (workplace / "again.jsonl").exists()


def broken_off(lumos: Lumos, platform: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that ends in the middle, as if it had been killed there."""
    with monkeypatch.context() as patched:
        patched.setattr("lumos.snapshots.import_progress.ImportProgress.close", _killed)
        with pytest.raises(KeyboardInterrupt):
            lumos.snapshot.load(file, platform=platform)


def _killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_taking_back_twice_does_not_take_back_the_import_before(
    lumos: Lumos, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snapshot(*many(3), file="first.jsonl")
    lumos.snapshot.load(first, platform=platform)
    second = snapshot(*many(5), file="second.jsonl")
    broken_off(lumos, platform, second, monkeypatch)
    assert lumos.snapshot.roll_back(platform=platform).erased == 2
    with pytest.raises(MisuseError, match=r"no import into .* to roll back"):
        lumos.snapshot.roll_back(platform=platform)
    Path(second).unlink()
    with pytest.raises(MisuseError, match="of another snapshot"):
        lumos.snapshot.roll_back(second, platform=platform)
    assert len(held(lumos, platform)) == 3
    assert lumos.snapshot.roll_back(first, platform=platform).erased == 3


def test_a_target_that_cannot_be_written_is_refused_before_anything_begins(lumos: Lumos) -> None:
    file = snapshot(*many(2))
    platform = "datahub-file:no-such-folder/estate.json"
    with pytest.raises(LumosError, match="cannot be written") as refused:
        lumos.snapshot.load(file, platform=platform)
    assert "--resume" not in str(refused.value)
    with pytest.raises(MisuseError, match="no import into"):
        lumos.snapshot.roll_back(platform=platform)


def test_an_import_that_wrote_nothing_is_taken_back_where_nothing_can_be_written(
    lumos: Lumos, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "catalog").mkdir()
    platform = "datahub-file:catalog/estate.json"
    with monkeypatch.context() as patched:
        patched.setattr("lumos.snapshots.targets.CatalogTarget._write_batch", _killed)
        with pytest.raises(KeyboardInterrupt):
            lumos.snapshot.load(snapshot(*many(2)), platform=platform)
    (workplace / "catalog").rmdir()
    report = lumos.snapshot.roll_back(platform=platform)
    assert (report.restored, report.erased) == (0, 0)


def test_a_name_that_the_store_has_no_room_for_is_refused_before_anything_is_written(
    workplace: Path,  # noqa: ARG001
    empty_postgres: str,
) -> None:
    lumos = Lumos(
        overrides={"storage.backend": "postgres", "storage.connection_string": empty_postgres}
    )
    # Letters without a pattern, so that nothing makes them shorter.
    letters = random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=4000)
    long = f"lumos://s3/z/{''.join(letters)}"
    entries = [
        CatalogEntry(urn=f"lumos://s3/a/{number:04}", name="a", platform="s3")
        for number in range(450)
    ]
    file = snapshot(*entries, CatalogEntry(urn=long, name="z", platform="s3"))
    with pytest.raises(LumosError, match=r"The dataset lumos://s3/z/.*at most 2,600"):
        lumos.snapshot.load(file)
    assert held(lumos, "local") == []
    edge = Lineage(upstream=(UpstreamEdge(urn=long),))
    file = snapshot(
        *entries, CatalogEntry(urn="lumos://s3/z", name="z", platform="s3", lineage=edge)
    )
    with pytest.raises(LumosError, match=r"The dataset lumos://s3/z was refused.*at most 2,600"):
        lumos.snapshot.load(file, allow_dangling=True)
    assert held(lumos, "local") == []
    assert lumos.snapshot.load(snapshot(*entries)).sums.tally("datasets").created == 450


def test_a_dataset_under_another_spelling_of_its_name_is_refused(
    lumos: Lumos, platform: str, workplace: Path
) -> None:
    entry = {"urn": "lumos://s3/b?env=PROD", "name": "b", "platform": "s3"}
    header = {
        "format": "lumos-snapshot", "format_version": "1.0", "exported_by": "me", "scope": "all",
        "exported_at": "2024-01-15T00:00:00Z",
    }  # fmt: skip
    (workplace / "other.json").write_text(json.dumps({**header, "datasets": [entry]}))
    with pytest.raises(
        InvalidSnapshot, match=r"datasets\[0\]\.urn: .*must be written 'lumos://s3/b'"
    ):
        lumos.snapshot.load("other.json", platform=platform)


def test_a_change_that_an_import_brings_names_what_it_breaks(lumos: Lumos) -> None:
    reader = CatalogEntry(
        urn=f"{ORDERS}_by_city",
        name="orders_by_city",
        platform="file",
        lineage=Lineage(upstream=(UpstreamEdge(urn=ORDERS),)),
        ownership=Ownership(owners=(Owner(name="maps"),)),
    )
    lumos.snapshot.load(snapshot(orders(schema=WIDE), reader))
    lumos.snapshot.load(snapshot(orders(schema=NARROW), reader))
    (event,) = lumos.changes(breaking=True).events
    assert event.cause == "import"
    assert event.affected is not None
    assert event.affected.summary == "may break orders_by_city (maps)"
    assert event.affected_downstream == (reader.urn,)
    lumos.snapshot.roll_back()
    assert one(lumos, "local").schema == WIDE
