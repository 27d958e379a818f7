"""Catalogs hear of what changed after it is safe, whatever state they are in themselves."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from catalogs.fake_catalog import PretendedCatalog
from cost.documented_example import NOW, write_example
from lumos import Lumos
from lumos.catalogs.auto_publisher import AutoPublisher
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.catalogs.datahub.metadata_file import MetadataFile
from lumos.catalogs.publisher import CatalogPublisher
from lumos.catalogs.reports import PublishReport
from lumos.cost.service import Costs
from lumos.lineage.reported_lineage import DatasetRead, ReportedAnnotations, UrnReference
from lumos.model.catalog import CatalogEntry, GlossaryTerm, Job, User
from lumos.model.dataset import Documentation, Governance, Owner, UpstreamEdge
from lumos.model.json_codec import to_json
from lumos.plugins import PLATFORMS, register, unregister
from recorded_lake import SOURCE, RecordedLake, urn_of

SCHEMA = "id INT64\nemail STRING"
ORDERS, SALES = (str(urn_of(f"/lake/{name}")) for name in ("orders", "sales"))


@pytest.fixture
def stored(workplace: Path) -> dict[str, object]:
    """The settings of an empty store."""
    return {"storage.path": str(workplace / "lumos.db")}


@pytest.fixture
def catalog() -> Iterator[PretendedCatalog]:
    pretended = PretendedCatalog()
    register(PLATFORMS, "pretended", lambda _settings: pretended)
    yield pretended
    unregister(PLATFORMS, "pretended")


@pytest.fixture
def seen(stored: dict[str, object], catalog: PretendedCatalog) -> RecordedLake:  # noqa: ARG001
    """A lake whose store keeps the pretended catalog true."""
    return RecordedLake(Lumos(overrides={**stored, "platform": "pretended"}))


@pytest.fixture
def beside_a_file(workplace: Path) -> RecordedLake:
    """A lake whose store keeps a file of DataHub true."""
    settings = {"platform": "datahub-file:estate.json", "storage.path": str(workplace / "lumos.db")}
    return RecordedLake(Lumos(overrides=settings))


def tell(seen: RecordedLake, catalog: PretendedCatalog) -> PublishReport:
    return CatalogPublisher(seen.store, catalog).deliver()


def held(folder: Path) -> dict[str, CatalogEntry]:
    return {each.urn: each for each in DatahubFile.at(str(folder / "estate.json")).export()}


def remove(seen: RecordedLake, name: str) -> None:
    recorder = seen.recorder()
    known = seen.store.known(source=SOURCE)[str(urn_of(f"/lake/{name}"))]
    with seen.store.transaction() as transaction:
        recorder.remove(transaction, known, None)


def test_a_catalog_hears_of_the_whole_store_once_and_then_of_changes(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    names = [f"table_{number}" for number in range(7)]
    seen.see_all(names, SCHEMA)
    assert CatalogPublisher(seen.store, catalog).is_first
    first = tell(seen, catalog)
    assert (first.published, first.unchanged, first.is_complete, first.pending_message) == (
        7,
        0,
        True,
        None,
    )
    assert not CatalogPublisher(seen.store, catalog).is_first
    assert catalog.calls == 3
    assert (tell(seen, catalog).published, catalog.calls) == (0, 3)
    seen.see("table_3", "id INT64")
    assert tell(seen, catalog).published == 1
    assert catalog.puts[7:] == [str(urn_of("/lake/table_3"))]
    CatalogPublisher(seen.store, catalog).add_all()
    again = tell(seen, catalog)
    assert (again.published, again.unchanged) == (7, 7)


def test_what_is_told_is_what_an_export_of_the_store_gives(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see("orders", SCHEMA)
    seen.see("orders", f"{SCHEMA}\nnote STRING")
    seen.see("sales", SCHEMA)
    lumos = seen.lumos
    lumos.annotations.tags.set("orders", "pii")
    lumos.lineage.add(ORDERS, SALES, columns={"id": "id"})
    lumos.annotations.terms.define("revenue", definition="What came in")
    assert list(catalog.export()) == list(lumos.snapshot._catalogs.named("local").datasets())
    assert [type(each) for each in catalog.items()] == [GlossaryTerm]


def test_a_catalog_that_is_down_is_told_the_rest_later(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see_all([f"table_{number}" for number in range(7)], SCHEMA)
    catalog.strength = 4
    report = tell(seen, catalog)
    assert (report.published, report.waiting) == (4, 3)
    assert report.pending_message == (
        "3 datasets not yet published to pretended (503). "
        "Retry with `lumos sync`, or wait for the next scan."
    )
    assert (tell(seen, catalog).waiting, len(catalog.puts)) == (3, 4)
    catalog.strength = None
    report = tell(seen, catalog)
    assert (report.published, report.waiting, report.pending_message) == (3, 0, None)
    assert len(catalog.puts) == len(set(catalog.puts)) == 7


def test_who_looks_again_and_again_leaves_a_catalog_that_is_down_in_peace(
    seen: RecordedLake, catalog: PretendedCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    publisher = AutoPublisher(lambda: catalog, lambda: seen.store, clock=lambda: now)
    asked: list[int] = []

    def tell_after(seconds: int) -> PublishReport:
        nonlocal now
        now += timedelta(seconds=seconds)
        before = catalog.asked
        report = publisher.publish()
        assert report is not None
        asked.append(catalog.asked - before)
        return report

    seen.see("orders", SCHEMA)
    catalog.strength = 0
    with publisher.backing_off():
        assert tell_after(0).next_try == datetime(2026, 11, 16, 12, 1, tzinfo=UTC)
        seen.see("sales", SCHEMA)
        report = tell_after(59)
        assert (report.waiting, report.is_complete) == (2, False)
        assert report.pending_message == (
            "2 datasets not yet published to pretended (503). "
            "Retry with `lumos sync`, or wait for a scan after 12:01:00 UTC."
        )
        tell_after(1)
        tell_after(119)
        tell_after(1)
        for _ in range(5):
            tell_after(900)
        rest = tell_after(0).next_try
        assert rest is not None
        assert rest - now == timedelta(minutes=15)
        assert [bool(calls) for calls in asked] == [
            True, False, True, False, True, *[True] * 5, False,
        ]  # fmt: skip
        assert caplog.text.count("not yet published") == sum(map(bool, asked))
        catalog.strength = None
        assert tell_after(900).published == 2
        catalog.strength = 0
        seen.see("customers", SCHEMA)
        assert tell_after(0).next_try == now + timedelta(minutes=1)
    # Who asks but once gets an answer.
    before = catalog.asked
    assert tell_after(0).next_try is None
    assert catalog.asked > before


def test_what_people_say_stands_though_the_catalog_is_down(
    seen: RecordedLake, catalog: PretendedCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    seen.see("orders", SCHEMA)
    catalog.strength = 0
    seen.lumos.annotations.tags.set("orders", "pii")
    assert seen.store.get(ORDERS).governance == Governance(tags=("pii",))
    assert "1 dataset not yet published to pretended (503). Retry with" in caplog.text
    assert catalog.entries == {}
    catalog.strength = None
    seen.lumos.annotations.tags.set("orders", "other")
    assert catalog.entries[ORDERS].governance == Governance(tags=("pii", "other"))


def test_a_refused_entry_is_named_and_keeps_nobody_else_waiting(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see_all(["a", "orders", "z"], SCHEMA)
    catalog.refuses = {ORDERS, "anna"}
    seen.lumos.annotations.owners.add("anna")
    report = tell(seen, catalog)
    assert report.pending_message is None
    assert [(each.kind, each.key) for each in report.refused] == [
        ("user", "anna"),
        ("dataset", ORDERS),
    ]
    assert (ORDERS in catalog.entries, len(catalog.entries)) == (False, 2)
    catalog.refuses = set()
    report = tell(seen, catalog)
    assert (report.published, report.items, report.refused) == (1, 1, ())
    assert ORDERS in catalog.entries


def test_a_dataset_that_is_gone_is_hidden_and_what_only_the_catalog_knows_is_left_alone(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    own = CatalogEntry(
        urn=SALES, name="sales", platform="file", documentation=Documentation(domain="x")
    )
    catalog.entries[SALES] = own
    seen.see_all(["orders", "erased"], SCHEMA)
    tell(seen, catalog)
    with seen.store.transaction() as transaction:
        transaction.catalog_outbox.add(SALES)
    remove(seen, "orders")
    del catalog.entries[str(urn_of("/lake/erased"))]
    remove(seen, "erased")
    report = tell(seen, catalog)
    assert (report.hidden, report.published) == (2, 0)
    assert catalog.entries[ORDERS].deleted
    assert catalog.entries[ORDERS].schema is not None
    # Somebody took it out there, and nothing is made anew only to be hidden.
    assert catalog.entries.keys() == {ORDERS, SALES}
    assert catalog.entries[SALES] == own
    seen.see("orders", SCHEMA)
    tell(seen, catalog)
    assert not catalog.entries[ORDERS].deleted


def test_a_renamed_dataset_is_told_under_its_new_name_and_hidden_under_the_old(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see_all(["orders", "sales"], SCHEMA)
    seen.lumos.lineage.add(ORDERS, SALES)
    seen.see("bookings", SCHEMA, renamed_from="orders")
    tell(seen, catalog)
    bookings = str(urn_of("/lake/bookings"))
    assert {urn: each.deleted for urn, each in catalog.entries.items()} == {
        ORDERS: True, bookings: False, SALES: False,
    }  # fmt: skip
    lineage = catalog.entries[SALES].lineage
    assert lineage is not None
    assert [edge.urn for edge in lineage.upstream] == [bookings]


def test_what_people_wrote_in_the_catalog_stays_and_conflicts_are_told(
    seen: RecordedLake,
    catalog: PretendedCatalog,
    stored: dict[str, object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen.see("orders", SCHEMA)
    seen.lumos.annotations.docs.set("orders", "first")
    catalog.entries[ORDERS] = msgspec.structs.replace(
        catalog.entries[ORDERS], documentation=Documentation(description="by hand")
    )
    seen.lumos.annotations.tags.set("orders", "pii")
    assert catalog.entries[ORDERS].documentation == Documentation(description="by hand")
    # Whoever has another catalog configured, or none, changes what this one hears.
    Lumos(overrides=stored).annotations.docs.set("orders", "second")
    report = seen.lumos._publisher.publish()
    assert report is not None
    assert f"kept the edit in the catalog: documentation.description of {ORDERS}" in caplog.text
    assert [(each.key, each.path, each.theirs, each.ours) for each in report.conflicts] == [
        (ORDERS, "documentation.description", "by hand", "second")
    ]
    assert catalog.entries[ORDERS].documentation == Documentation(description="by hand")


def test_conflicts_stay_on_record_until_the_values_agree(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    def conflicts() -> list[tuple[str, str, str, str]]:
        (status,) = seen.lumos.catalog_status().catalogs
        assert status.conflict_count == len(status.conflicts)
        return [
            (entry.key, each.path, each.theirs, each.ours)
            for entry in status.conflicts
            for each in entry.values
        ]

    def describe_in_catalog(text: str) -> None:
        catalog.entries[ORDERS] = msgspec.structs.replace(
            catalog.entries[ORDERS], documentation=Documentation(description=text)
        )

    seen.see("orders", SCHEMA)
    seen.lumos.annotations.docs.set("orders", "first")
    assert conflicts() == []
    describe_in_catalog("by hand")
    seen.lumos.annotations.docs.set("orders", "second")
    path = "documentation.description"
    assert conflicts() == [(ORDERS, path, "by hand", "second")]
    # Publishing again is no new conflict, but the values still differ.
    describe_in_catalog("by hand again")
    seen.lumos.annotations.tags.set("orders", "pii")
    assert conflicts() == [(ORDERS, path, "by hand again", "second")]
    seen.lumos.annotations.docs.set("orders", "by hand again")
    assert conflicts() == []


def test_lineage_is_told_and_goes_again(seen: RecordedLake, catalog: PretendedCatalog) -> None:
    seen.see_all(["orders", "sales"], SCHEMA)
    seen.lumos.lineage.add(ORDERS, SALES, columns={"id": "id"})
    lineage = catalog.entries[SALES].lineage
    assert lineage is not None
    assert [(edge.urn, len(edge.columns)) for edge in lineage.upstream] == [(ORDERS, 1)]
    by_hand = msgspec.structs.replace(
        lineage, upstream=(*lineage.upstream, UpstreamEdge(urn="lumos://kafka/clicks"))
    )
    catalog.entries[SALES] = msgspec.structs.replace(catalog.entries[SALES], lineage=by_hand)
    seen.lumos.lineage.remove(ORDERS, SALES)
    lineage = catalog.entries[SALES].lineage
    assert lineage is not None
    assert [edge.urn for edge in lineage.upstream] == ["lumos://kafka/clicks"]


def test_an_edge_is_told_once_the_dataset_that_it_comes_from_is_known(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see("sales", SCHEMA)
    seen.lumos.lineage.add(ORDERS, SALES, allow_dangling=True)
    assert catalog.entries[SALES].lineage is None
    seen.see("orders", SCHEMA)
    tell(seen, catalog)
    lineage = catalog.entries[SALES].lineage
    assert lineage is not None
    assert [edge.urn for edge in lineage.upstream] == [ORDERS]
    assert seen.store.catalog_outbox.counts("pretended") == {}


def test_a_job_is_told_again_once_all_that_it_reads_and_writes_is_known(
    seen: RecordedLake, catalog: PretendedCatalog, tmp_path: Path
) -> None:
    def ends() -> tuple[tuple[str, ...], tuple[str, ...]]:
        (job,) = [item for item in catalog.items() if isinstance(item, Job)]
        return job.inputs, job.outputs

    seen.see("sales", SCHEMA)
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2024-01-15T06:00:00Z",
        "run": {"runId": "0190a1a2-0000-7000-8000-000000000001"},
        "job": {"namespace": "airflow", "name": "load"},
        "inputs": [{"namespace": "file", "name": "/lake/orders"}],
        "outputs": [{"namespace": "file", "name": "/lake/sales"}],
        "producer": "https://example.com",
    }
    file = tmp_path / "events.json"
    file.write_bytes(to_json(event))
    seen.lumos.lineage.ingest(file)
    assert ends() == ((), (SALES,))
    seen.see("orders", SCHEMA)
    tell(seen, catalog)
    assert ends() == ((ORDERS,), (SALES,))
    assert seen.store.catalog_outbox.counts("pretended") == {}


def test_files_with_lineage_are_told_at_once_with_all_that_they_say(
    seen: RecordedLake, catalog: PretendedCatalog, tmp_path: Path
) -> None:
    seen.see_all(["orders", "sales"], SCHEMA)
    tell(seen, catalog)
    calls = catalog.calls
    file = tmp_path / "edges.yaml"
    file.write_text(
        f"lineage:\n  - {{upstream: {ORDERS}, downstream: {SALES}}}\n", encoding="utf-8"
    )
    assert seen.lumos.lineage.ingest(file).edges.added == 1
    assert catalog.calls == calls + 1
    assert catalog.entries[SALES].lineage is not None
    seen.lumos.lineage.ingest(file, dry_run=True)
    assert catalog.calls == calls + 1


def test_reads_are_told(seen: RecordedLake, catalog: PretendedCatalog) -> None:
    seen.see("orders", SCHEMA)
    at = datetime.now(UTC)
    seen.lumos.usage.record(
        "runs", [(ORDERS, DatasetRead(dataset=UrnReference(urn=ORDERS), reader="anna", at=at))]
    )
    usage = catalog.entries[ORDERS].usage
    assert usage is not None
    assert [each.name for each in usage.readers] == ["anna"]


def test_recorded_costs_are_told(workplace: Path, catalog: PretendedCatalog) -> None:
    shop = write_example(workplace, unattributed=True)
    lumos = Lumos(workplace / "lumos.yaml", environment={"LUMOS_PLATFORM": "pretended"})
    Costs(
        lumos.settings,
        shop._store.open,
        clock=lambda: NOW,
        publishing=lumos._publisher.publish_after,
    ).record("2024-02")
    costs = {each.name: each.cost for each in catalog.export() if each.cost is not None}
    assert {cost.period for cost in costs.values()} == {"2024-02"}
    assert "ml_predictions" in costs


def test_terms_and_people_come_and_go_with_the_store_but_not_those_of_the_catalog(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    catalog.put_item(GlossaryTerm(name="theirs"))
    seen.see("orders", SCHEMA)
    terms = seen.lumos.annotations.terms
    terms.define("ours", definition="A")
    catalog.put_item(GlossaryTerm(name="ours", definition="A", domain="by hand"))
    terms.define("ours", definition="B")
    assert catalog.get_item(GlossaryTerm, "ours") == GlossaryTerm(
        name="ours", definition="B", domain="by hand"
    )
    terms.undefine("ours")
    assert {each.name for each in catalog.items() if isinstance(each, GlossaryTerm)} == {"theirs"}
    seen.lumos.annotations.owners.add("anna")
    assert isinstance(catalog.get_item(User, "anna"), User)


def test_what_a_reporter_describes_is_told_at_once(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see("orders", SCHEMA)
    tell(seen, catalog)
    calls = catalog.calls
    told = ReportedAnnotations(
        dataset=UrnReference(urn=ORDERS),
        description="of dbt",
        owners=(Owner(name="anna"),),
        tags=("daily",),
    )
    seen.lumos.annotations.describe("dbt:shop", [(ORDERS, told)])
    assert catalog.calls == calls + 1
    assert catalog.entries[ORDERS].documentation == Documentation(description="of dbt")
    assert [type(each) for each in catalog.items()] == [User]


def test_what_changes_while_it_is_told_is_told_again(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see("orders", SCHEMA)

    def change(_: CatalogEntry) -> None:
        catalog.before_each = lambda _: None
        seen.see("orders", "id INT64")

    catalog.before_each = change
    assert tell(seen, catalog).published == 2
    schema = catalog.entries[ORDERS].schema
    assert schema is not None
    assert len(schema.fields) == 1


def test_two_at_once_do_no_harm(seen: RecordedLake, catalog: PretendedCatalog) -> None:
    seen.see_all(["a", "b", "c", "d"], SCHEMA)
    is_telling, may_go_on = threading.Event(), threading.Event()

    def wait(_: CatalogEntry) -> None:
        is_telling.set()
        assert may_go_on.wait(30)

    catalog.before_each = wait
    first = threading.Thread(target=lambda: tell(seen, catalog))
    first.start()
    assert is_telling.wait(30)
    second = tell(seen, catalog)
    may_go_on.set()
    first.join()
    assert second.pending_message == (
        "4 datasets not yet published to pretended (another process is publishing to it). "
        "Retry with `lumos sync`, or wait for the next scan."
    )
    assert (len(catalog.puts), seen.store.catalog_outbox.counts("pretended")) == (4, {})


def test_killed_after_the_catalog_took_it_and_told_again_nothing_is_other(
    seen: RecordedLake, catalog: PretendedCatalog
) -> None:
    seen.see_all(["a", "b", "c", "d"], SCHEMA)
    seen.lumos.annotations.tags.set("*", "pii")
    seen.see_all(["a", "b", "c", "d"], f"{SCHEMA}\nnote STRING")

    def kill(entry: CatalogEntry) -> None:
        if entry.name == "c":
            raise KeyboardInterrupt

    catalog.before_each = kill
    with pytest.raises(KeyboardInterrupt):
        tell(seen, catalog)
    catalog.before_each = lambda _: None
    report = tell(seen, catalog)
    assert (report.published, report.conflicts, report.waiting) == (4, (), 0)
    assert list(catalog.export()) == list(seen.lumos.snapshot._catalogs.named("local").datasets())


def test_another_catalog_that_is_configured_hears_of_everything(
    seen: RecordedLake, catalog: PretendedCatalog, stored: dict[str, object], workplace: Path
) -> None:
    seen.see_all(["orders", "sales"], SCHEMA)
    tell(seen, catalog)
    switched = Lumos(overrides={**stored, "platform": f"datahub-file:{workplace}/estate.json"})
    switched.annotations.tags.set("orders", "pii")
    assert held(workplace).keys() == {ORDERS, SALES}
    assert seen.store.catalog_outbox.counts("pretended") == {"datasets": 1}
    assert tell(seen, catalog).published == 1


def test_what_is_imported_into_the_store_is_told_and_hidden_when_it_is_taken_back(
    seen: RecordedLake, catalog: PretendedCatalog, workplace: Path
) -> None:
    other = RecordedLake(Lumos(overrides={"storage.path": str(workplace / "other.db")}))
    other.see_all(["orders", "sales"], SCHEMA)
    other.lumos.snapshot.export(workplace / "all.json")
    seen.see("a", SCHEMA)
    seen.lumos.snapshot.try_load(workplace / "all.json", platform="local")
    assert catalog.entries == {}
    seen.lumos.snapshot.load(workplace / "all.json", platform="local")
    assert catalog.entries.keys() >= {ORDERS, SALES}
    seen.lumos.snapshot.roll_back(platform="local")
    tell(seen, catalog)
    assert {urn for urn, each in catalog.entries.items() if each.deleted} == {ORDERS, SALES}


def test_a_file_is_written_once_for_all_that_is_told(
    beside_a_file: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves: list[int] = []
    save = MetadataFile.save

    def counted(self: MetadataFile) -> None:
        saves.append(1)
        save(self)

    monkeypatch.setattr(MetadataFile, "save", counted)
    beside_a_file.see_all([f"table_{number}" for number in range(300)], SCHEMA)
    beside_a_file.lumos.annotations.terms.set("table_7", "revenue")
    assert len(saves) == 1
    assert len(held(workplace)) == 300
    lumos = beside_a_file.lumos
    assert lumos.snapshot.diff("local", "datahub-file:estate.json").summary.differences == 0


def test_a_file_that_cannot_be_written_is_told_later(
    beside_a_file: RecordedLake, workplace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    beside_a_file.see("orders", SCHEMA)
    (workplace / "estate.json").write_text("no metadata", encoding="utf-8")
    beside_a_file.lumos.annotations.tags.set("orders", "pii")
    assert "1 dataset not yet published to datahub-file (" in caplog.text
    (workplace / "estate.json").unlink()
    beside_a_file.lumos.annotations.tags.set("orders", "other")
    assert held(workplace)[ORDERS].governance == Governance(tags=("pii", "other"))


def test_news_wait_and_are_told_on_a_shared_store(
    catalog: PretendedCatalog,
    empty_postgres: str,
    workplace: Path,  # noqa: ARG001
) -> None:
    storage = {"storage.backend": "postgres", "storage.connection_string": empty_postgres}
    seen = RecordedLake(Lumos(overrides={**storage, "platform": "pretended"}))
    seen.see_all(["a", "orders", "sales", "z"], SCHEMA)
    catalog.strength, catalog.refuses = 2, {ORDERS}
    report = tell(seen, catalog)
    assert (report.published, report.waiting, len(report.refused), report.status) == (1, 2, 1, 503)
    catalog.strength, catalog.refuses = None, set()
    seen.lumos.lineage.add(ORDERS, SALES)
    assert catalog.entries.keys() == set(seen.store.known(source=SOURCE))
    assert catalog.entries[SALES].lineage is not None
    remove(seen, "a")
    assert (tell(seen, catalog).hidden, seen.store.catalog_outbox.counts("pretended")) == (1, {})
