"""What any store does, whatever database is behind it."""

from collections.abc import Sized

import pytest
from sqlalchemy.event import listen

from lumos.model.dataset import Location, Ownership, Statistics
from lumos.model.schema import parse_schema
from lumos.store import DatasetFilter, FinishedScan, Store
from lumos.store.errors import AmbiguousName, UnknownDataset
from store.conftest import AT, dataset, event

ORDERS = "lumos://file/lake/orders"


def test_a_dataset_comes_back_with_schema_versions_and_aspects(store: Store) -> None:
    schema = parse_schema("id INT64 NOT NULL COMMENT 'the id'\namount DECIMAL(10,2)")
    location = Location(uri="/lake/orders", partition_keys=("dt",))
    with store.transaction() as transaction:
        hash = transaction.save_schema(schema)
        transaction.save(dataset(schema_hash=hash))
        transaction.save_aspect(ORDERS, "location", location, writer="scan", at=AT)
    got = store.get(ORDERS)
    assert (got.schema, got.location, got.statistics) == (schema, location, None)
    assert got.versioning is not None
    assert got.versioning.cloud_version == "S-1"


def test_writing_one_aspect_leaves_the_others_alone(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.save_aspect(ORDERS, "ownership", Ownership(), writer="user", at=AT)
        transaction.save_aspect(
            ORDERS, "statistics", Statistics(file_count=1), writer="scan", at=AT
        )
    with store.transaction() as transaction:
        transaction.save_aspect(
            ORDERS, "statistics", Statistics(file_count=2), writer="scan", at=AT
        )
    got = store.get(ORDERS)
    assert (got.ownership, got.statistics) == (Ownership(), Statistics(file_count=2))


def test_an_aspect_that_does_not_exist_is_refused(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset())
        with pytest.raises(ValueError, match="'colour' is not stored as an aspect"):
            transaction.save_aspect(ORDERS, "colour", Ownership(), writer="user", at=AT)


def test_saving_again_updates_the_dataset_but_keeps_its_birthday(store: Store) -> None:
    later = AT.replace(year=2025)
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.save(dataset(cloud_version="S-2", created_at=later, updated_at=later))
    known = store.known(source="file:/lake")[ORDERS]
    assert (known.cloud_version, known.created_at, known.updated_at) == ("S-2", AT, later)


def test_a_dataset_that_is_saved_for_each_of_its_versions_is_written_once(store: Store) -> None:
    written = 0

    def count(_0: object, _1: object, sql: str, rows: Sized, _2: object, many: bool) -> None:
        nonlocal written
        if sql.startswith("INSERT INTO dataset "):
            written += len(rows) if many else 1

    listen(store._database.engine, "before_cursor_execute", count)
    with store.transaction() as transaction:
        for number in range(1, 6):
            transaction.save(dataset(cloud_version=f"S-{number}"))
    assert written == 1
    assert store.known(source="file:/lake")[ORDERS].cloud_version == "S-5"


def test_the_same_schema_is_kept_once(store: Store) -> None:
    with store.transaction() as transaction:
        first = transaction.save_schema(parse_schema("a INT64"))
        second = transaction.save_schema(parse_schema("a  int64"))
    assert first == second
    assert store.counts()["schema_body"] == 1


def test_the_same_event_found_twice_is_one_event(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save_event(event())
        transaction.save_event(event())
        assert transaction.new_events == [event()]
        transaction.save_event(event())
        assert transaction.new_events == [event()]
    assert [found.event_id for found in store.events(ORDERS)] == ["e1"]


def test_events_come_back_in_the_order_they_were_recorded(store: Store) -> None:
    with store.transaction() as transaction:
        for number in (3, 1, 2):
            transaction.save_event(event(f"e{number}"))
    assert [found.event_id for found in store.events(ORDERS)] == ["e3", "e1", "e2"]


def test_history_holds_every_schema_version(store: Store) -> None:
    for number, text in enumerate(["a INT32", "a INT64", "a STRING"], start=1):
        with store.transaction() as transaction:
            known = dataset(
                schema_hash=transaction.save_schema(parse_schema(text)),
                schema_version=f"{number}.0.0",
                cloud_version=f"S-{number}",
            )
            transaction.save(known)
            transaction.save_schema_version(known, event(f"e{number}"))
            # Recorded again after a crash, it stays one version.
            transaction.save_schema_version(known, event(f"e{number}"))
    history = store.history(ORDERS)
    assert [(record.number, record.version) for record in history] == [
        (1, "1.0.0"),
        (2, "2.0.0"),
        (3, "3.0.0"),
    ]
    assert str(history[1].schema) == "a INT64"


def test_a_failed_transaction_leaves_nothing_behind(store: Store) -> None:
    def fail() -> None:
        with store.transaction() as transaction:
            transaction.save(dataset())
            transaction.save_event(event())
            raise RuntimeError("the power went out")

    with pytest.raises(RuntimeError, match="power"):
        fail()
    assert store.counts()["dataset"] == 0
    assert store.counts()["change_event"] == 0


def test_an_alias_leads_to_the_dataset_and_follows_a_second_move(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset("orders"))
        transaction.save(dataset("sales"))
        transaction.save_alias("lumos://file/lake/old", of=ORDERS, reason="moved", at=AT)
        transaction.save_alias(ORDERS, of="lumos://file/lake/sales", reason="moved", at=AT)
    assert store.get("lumos://file/lake/old").name == "sales"
    assert store.get(ORDERS).name == "sales"
    assert store.find("old") == "lumos://file/lake/sales"
    with pytest.raises(UnknownDataset):
        store.find("older")


def test_listing_filters_and_treats_wildcards_as_text(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset("orders"))
        transaction.save(dataset("Users", format="csv"))
        transaction.save(dataset("50%_off", urn="lumos://file/lake/50%25_off"))
        transaction.save(dataset("gone", state="missing"))

    def names(**wanted: object) -> list[str]:
        found = store.list(DatasetFilter(**wanted))  # type: ignore[arg-type]
        return [known.name for known in found]

    assert names() == ["50%_off", "Users", "orders"]
    assert names(format="csv") == ["Users"]
    assert names(contains="user") == ["Users"]
    assert names(contains="%_") == ["50%_off"]
    assert names(platform="s3") == []
    assert names(limit=1) == ["50%_off"]


def test_a_dataset_is_found_by_name_or_end_of_path(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset("orders"))
        transaction.save(dataset("orders", urn="lumos://file/old/orders"))
        transaction.save(dataset("odd name", urn="lumos://file/lake/odd%20name"))
    assert store.find("odd name") == "lumos://file/lake/odd%20name"
    assert store.find("lake/orders") == ORDERS
    with pytest.raises(AmbiguousName, match="lumos://file/lake/orders, lumos://file/old/orders"):
        store.find("orders")
    with pytest.raises(UnknownDataset, match="lumos list"):
        store.find("nothing")
    with pytest.raises(UnknownDataset, match=r"Did you mean 'lumos://file/(lake|old)/orders'"):
        store.get("lumos://s3/bucket/orders")


@pytest.mark.parametrize("recorded", ["tickets", "tickets.jsonl"])
@pytest.mark.parametrize("name", ["tickets", "tickets.jsonl", "raw/tickets", "raw/tickets.jsonl"])
def test_a_file_is_found_with_and_without_its_extensions(
    store: Store, name: str, recorded: str
) -> None:
    tickets = "lumos://file/raw/tickets.jsonl"
    with store.transaction() as transaction:
        transaction.save(dataset(recorded, urn=tickets))
        transaction.save(dataset("tickets.v2", urn="lumos://file/raw/tickets.v2"))
        transaction.save(dataset("tickets_old", urn="lumos://file/raw/tickets_old.jsonl"))
    assert store.find(name) == tickets


def test_a_file_is_found_by_some_of_its_extensions(store: Store) -> None:
    iota = "lumos://file/raw/iota.snappy.parquet"
    with store.transaction() as transaction:
        transaction.save(dataset("iota", urn=iota))
    assert store.find("iota.snappy") == iota


def test_two_files_with_one_name_are_distinguished_by_their_extensions(store: Store) -> None:
    plain, packed = "lumos://file/raw/delta.csv", "lumos://file/raw/delta.csv.gz"
    with store.transaction() as transaction:
        transaction.save(dataset("delta", urn=plain))
        transaction.save(dataset("delta.csv.gz", urn=packed))
    assert store.find("delta.csv.gz") == packed
    assert store.find("delta.csv") == plain
    with pytest.raises(AmbiguousName, match=f"{plain}, {packed}"):
        store.find("delta")


def test_the_last_scan_of_a_source_is_remembered(store: Store) -> None:
    assert store.last_scan("file:/lake") is None
    for number in ("000001-a", "000002-b"):
        with store.transaction() as transaction:
            transaction.save_scan(
                FinishedScan(
                    source="file:/lake", scan_id=number, manifest=f"/m/{number}", finished_at=AT
                )
            )
    last = store.last_scan("file:/lake")
    assert last == FinishedScan(
        source="file:/lake", scan_id="000002-b", manifest="/m/000002-b", finished_at=AT
    )


def test_the_audit_says_who_did_what_from_where(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.audit("ingest", "/lake", at=AT)
    assert store.counts()["audit"] == 1
