"""Many writers at once, and writers that are killed, on every database."""

import multiprocessing
import multiprocessing.synchronize
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumos.model.change import EventType
from lumos.model.schema import parse_schema
from lumos.store import Database, Facets, Store, Transaction, tables
from lumos.store.database import LockHeld
from lumos.store.errors import StoreContended
from store.conftest import dataset, event

DATASETS = 50


def reopened(place: str) -> Store:
    is_server = place.startswith("postgresql")
    return Store.open(Database.postgres(place) if is_server else Database.sqlite(Path(place)))


def place_of(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False) if (
        database.engine.dialect.name == "postgresql"
    ) else database.location  # fmt: skip


def step(store: Store, urn_number: int) -> None:
    """One update as a scan makes it: read, decide, write identity, schema, event and version."""
    name = f"d{urn_number}"
    with store.transaction() as transaction:
        known = transaction.known(f"lumos://file/lake/{name}")
        number = 1 if known is None else int(known.cloud_version.removeprefix("S-")) + 1
        schema = transaction.save_schema(parse_schema(f"c{number} INT64"))
        record = dataset(
            name,
            cloud_version=f"S-{number}",
            schema_version=f"{number}.0.0",
            schema_hash=schema,
        )
        transaction.save(record)
        change = event(f"{name}-{number}", urn=record.urn, type=EventType.SCHEMA_CHANGED)
        transaction.save_event(change)
        transaction.save_schema_version(record, change)
        assert transaction.new_events == [change]


def write_many(place: str, seed: int, times: int) -> None:
    store = reopened(place)
    chance = random.Random(seed)
    for _ in range(times):
        step(store, chance.randrange(DATASETS))


def assert_consistent(store: Store, *, updates: int | None) -> None:
    """Every version has its event, its schema and its place in the search index, once."""
    total = 0
    for known in store.known(source="file:/lake").values():
        number = int(known.cloud_version.removeprefix("S-"))
        total += number
        history = store.history(known.urn)
        assert [record.number for record in history] == list(range(1, number + 1))
        assert len(store.events(known.urn)) == number
        assert str(store.get(known.urn).schema) == f"c{number} INT64"
        found, _ = store.search(f"c{number} {known.name}", Facets(), limit=1)
        assert [each.urn for each in found] == [known.urn]
    counts = store.counts()
    assert counts[tables.change_event.name] == total
    assert counts[tables.search_entry.name] == counts[tables.dataset.name]
    assert updates is None or total == updates


def run_writers(database: Database, *, writers: int, updates: int) -> None:
    Store.open(database, create=True)
    place = place_of(database)
    spawn = multiprocessing.get_context("spawn")
    started = [
        spawn.Process(target=write_many, args=(place, seed, updates // writers))
        for seed in range(writers)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * writers
    assert_consistent(reopened(place), updates=updates)


@pytest.mark.slow
def test_eight_writers_lose_nothing_and_double_nothing(database: Database) -> None:
    run_writers(database, writers=8, updates=800)


@pytest.mark.slow
def test_eight_writers_make_ten_thousand_updates(database: Database) -> None:
    run_writers(database, writers=8, updates=10_000)


@pytest.mark.slow
def test_a_writer_killed_in_the_middle_leaves_a_consistent_store(database: Database) -> None:
    Store.open(database, create=True)
    place = place_of(database)
    spawn = multiprocessing.get_context("spawn")
    for seed in range(3):
        writer = spawn.Process(target=write_many, args=(place, seed, 1000))
        writer.start()
        deadline = time.monotonic() + 60
        before = reopened(place).counts()[tables.change_event.name]
        while reopened(place).counts()[tables.change_event.name] < before + 20:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
        assert_consistent(reopened(place), updates=None)
    store = reopened(place)
    step(store, 0)
    assert_consistent(store, updates=None)


def test_a_name_is_held_by_one_and_given_up_by_the_killed(database: Database) -> None:
    Store.open(database, create=True)
    place = place_of(database)
    spawn = multiprocessing.get_context("spawn")
    held = spawn.Event()
    holder = spawn.Process(target=hold, args=(place, held))
    holder.start()
    assert held.wait(60)
    store = reopened(place)
    with (
        pytest.raises(LockHeld, match=r"Another scan of file:/lake is running"),
        store.lock("file:/lake"),
    ):
        pass
    with store.lock("file:/other"):
        pass
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    for _ in range(100):
        try:
            with store.lock("file:/lake"):
                return
        except LockHeld:
            # A server notices a lost connection a moment later.
            time.sleep(0.1)
    pytest.fail("the name was never given up")


def hold(place: str, held: multiprocessing.synchronize.Event) -> None:
    with reopened(place).lock("file:/lake"):
        held.set()
        time.sleep(120)


def cross(store: Store, first: str, second: str, both: threading.Barrier) -> int:
    """Holds one dataset, then another, while somebody else does so the other way round."""
    attempts = 0

    def hold_both(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        transaction.known(first)
        if attempts == 1:
            both.wait(30)
        transaction.known(second)

    store.transact(hold_both)
    return attempts


def test_transactions_that_wait_for_each_other_are_repeated(emptied_postgres: str) -> None:
    store = Store.open(Database.postgres(emptied_postgres), create=True)
    both = threading.Barrier(2)
    with ThreadPoolExecutor() as pool:
        attempts = pool.map(lambda names: cross(store, *names, both), [("a", "b"), ("b", "a")])
        assert sorted(attempts) == [1, 2]
    store.close()


def test_a_deadlock_is_reported_as_contention(emptied_postgres: str) -> None:
    store = Store.open(Database.postgres(emptied_postgres), create=True)
    both = threading.Barrier(2)

    def hold_both(names: tuple[str, str]) -> None:
        with store.transaction() as transaction:
            transaction.known(names[0])
            both.wait(30)
            transaction.known(names[1])

    with (
        ThreadPoolExecutor() as pool,
        pytest.raises(StoreContended, match="at the same time") as caught,
    ):
        list(pool.map(hold_both, [("a", "b"), ("b", "a")]))
    assert "locked" not in str(caught.value)
    store.close()


def test_schemas_are_kept_before_long_transactions_begin(emptied_postgres: str) -> None:
    """Two that bring the same schemas in another order do not wait for each other."""
    store = Store.open(Database.postgres(emptied_postgres), create=True)
    schemas = [parse_schema(f"c{number} INT64") for number in range(20)]
    store.save_schemas(schemas)
    both = threading.Barrier(2)

    def save(order: int) -> int:
        attempts = 0

        def save_all(transaction: Transaction) -> None:
            nonlocal attempts
            attempts += 1
            transaction.save_schema(schemas[::order][0])
            both.wait(30)
            for schema in schemas[::order]:
                transaction.save_schema(schema)

        store.transact(save_all)
        return attempts

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(save, [1, -1])) == [1, 1]
    store.close()
