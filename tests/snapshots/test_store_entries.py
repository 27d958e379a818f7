"""Entries go into the store and come out as they were, on every database."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from sqlalchemy import event as sqlalchemy_event

from lumos import Lumos
from lumos.model.catalog import CatalogEntry, Timestamps
from lumos.model.dataset import Documentation, Versioning, VersionRecord
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.snapshots.store_entries import entry_of, erase_entry, put_entry
from lumos.store import Store
from snapshots.sample_inventories import customers, signups

AT = datetime(2024, 3, 1, tzinfo=UTC)
URN = "lumos://s3/lake/orders"
NARROW = Schema(fields=(Field(name="id", type=INT64),))
WIDE = Schema(fields=(Field(name="id", type=INT64), Field(name="city", type=STRING)))


@pytest.fixture
def store(stored: dict[str, object]) -> Store:
    return Store.open(Lumos(overrides=stored).database, create=True)


def put(store: Store, entry: CatalogEntry, *, at: datetime = AT) -> None:
    with store.transaction() as transaction:
        before = transaction.entries.get([entry.urn]).get(entry.urn)
        put_entry(transaction, entry, before=before, at=at)


def got(store: Store, urn: str) -> CatalogEntry | None:
    stored = store.entries.get(urn)
    return None if stored is None else entry_of(stored)


def orders(**facts: Any) -> CatalogEntry:
    return CatalogEntry(urn=URN, name="orders", platform="s3", **facts)


def record(number: int, version: str, **facts: Any) -> VersionRecord:
    at = datetime(2023, 1, number, tzinfo=UTC)
    return VersionRecord(cloud_version=f"S-{number}", schema_version=version, at=at, **facts)


HISTORY = (
    record(1, "1.0.0", schema=NARROW),
    record(7, "1.1.0", changes=("Added city field",), author="jane"),
)

ENTRIES = [
    pytest.param(customers(), id="everything"),
    pytest.param(signups(), id="little"),
    pytest.param(orders(), id="nothing"),
    pytest.param(orders(schema=Schema()), id="no-fields"),
    pytest.param(orders(schema=NARROW, properties={}, drift=()), id="empty"),
    pytest.param(orders(schema=NARROW, deleted=True), id="deleted"),
    pytest.param(
        orders(
            schema=WIDE,
            versioning=Versioning(cloud_version="S-9", schema_version="1.1.0", history=HISTORY),
        ),
        id="history",
    ),
    pytest.param(
        orders(schema=WIDE, versioning=Versioning(cloud_version="v two", schema_version="latest")),
        id="versions-that-do-not-count",
    ),
    pytest.param(
        orders(
            schema=NARROW,
            versioning=Versioning(
                cloud_version="S-9",
                schema_version="1.1.0",
                history=(record(7, "1.1.0"), record(1, "1.0.0"), record(7, "1.1.0")),
            ),
        ),
        id="history-in-disorder",
    ),
    pytest.param(
        orders(
            timestamps=Timestamps(created=AT.astimezone(timezone(timedelta(hours=2)))),
            raw={"datahub": {"status": {"removed": False}, "n": [1, 2.5, None]}},
        ),
        id="times-in-another-zone",
    ),
    pytest.param(
        orders(
            schema=NARROW,
            timestamps=Timestamps(created=AT.replace(tzinfo=None)),
            versioning=Versioning(
                cloud_version="S-1",
                schema_version="1.0.0",
                history=(
                    VersionRecord(
                        cloud_version="S-1", schema_version="1.0.0", at=AT.replace(tzinfo=None)
                    ),
                ),
            ),
        ),
        id="times-without-a-zone",
    ),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_put_comes_out_to_the_byte(store: Store, entry: CatalogEntry) -> None:
    put(store, entry)
    assert to_json(got(store, entry.urn)) == to_json(entry)
    put(store, entry, at=AT + timedelta(days=1))
    assert to_json(got(store, entry.urn)) == to_json(entry)


@pytest.mark.parametrize("entry", ENTRIES)
def test_nothing_is_left_of_what_was_there_before(store: Store, entry: CatalogEntry) -> None:
    put(store, msgspec.structs.replace(customers(), urn=entry.urn))
    put(store, entry)
    assert to_json(got(store, entry.urn)) == to_json(entry)


def test_an_erased_dataset_leaves_no_trace(store: Store) -> None:
    empty = store.counts()
    put(store, orders(schema=WIDE, versioning=ENTRIES[6].values[0].versioning))
    with store.transaction() as transaction:
        erase_entry(transaction, transaction.entries.get([URN])[URN])
    assert {**store.counts(), "schema_body": 0} == empty


def test_the_schemas_of_earlier_versions_are_in_the_history_with_their_changes(
    store: Store,
) -> None:
    put(store, ENTRIES[6].values[0])  # type: ignore[arg-type]
    first, second = store.schemas.versions(URN)
    assert (first.record.version, first.record.schema) == ("1.0.0", NARROW)
    assert (second.record.version, second.record.schema) == ("1.1.0", WIDE)
    assert second.event.summary == "1 field added: city"
    assert (second.event.author, second.event.cause) == ("jane", "import")
    assert second.record.recorded_at == HISTORY[1].at


def test_later_versions_continue_from_the_imported_ones(store: Store) -> None:
    given = orders(
        schema=NARROW, versioning=Versioning(cloud_version="S-9", schema_version="3.0.0")
    )
    put(store, given)
    with store.transaction() as transaction:
        known = transaction.known(URN)
        assert known is not None
        transaction.save(msgspec.structs.replace(known, cloud_version="S-10"))
    now = got(store, URN)
    assert now is not None
    assert now.versioning is not None
    assert (now.versioning.cloud_version, now.versioning.schema_version) == ("S-10", "3.0.0")


def test_the_datasets_come_by_urn_whatever_language_sorts_them(store: Store) -> None:
    names = ["b", "B", "a_b", "a-b", "ä", "a.b", "Z"]
    for name in names:
        put(store, msgspec.structs.replace(orders(), urn=f"lumos://s3/{name}"))
    urns = [stored.known.urn for stored in store.entries.all()]
    assert urns == sorted(urns)
    assert [each.known.urn for each in store.entries.all(after=urns[2])] == urns[3:]


def test_words_about_a_dataset_are_found_once_it_is_put(store: Store) -> None:
    from lumos.store import Facets

    put(store, orders(documentation=Documentation(description="who bought marmalade")))
    found, _ = store.search("marmalade", Facets(), limit=5)
    assert [each.urn for each in found] == [URN]


def test_new_datasets_are_written_together(store: Store) -> None:
    urns = [f"{URN}_{number}" for number in range(20)]
    entries = {urn: msgspec.structs.replace(orders(schema=WIDE), urn=urn) for urn in urns}
    written: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        written.append(statement)

    with store.transaction() as transaction:
        before = transaction.entries.get(list(entries))
        sqlalchemy_event.listen(store._database.engine, "before_cursor_execute", note)
        for urn, entry in entries.items():
            put_entry(transaction, entry, before=before.get(urn), at=AT)
        assert written == []
    assert sum(statement.startswith("INSERT INTO schema_version") for statement in written) == 1
    assert {urn: got(store, urn) for urn in urns} == entries
