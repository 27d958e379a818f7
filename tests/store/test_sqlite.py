"""What only a SQLite file can do to a store."""

import multiprocessing
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from lumos.store import (
    NoStore,
    Store,
    StoreLocked,
    StoreNotUsable,
    StoreTooNew,
    StoreTooOld,
)
from lumos.store.database import HEAD, REVISIONS, Database
from lumos.store.errors import StoreError, translate_errors
from store.conftest import AT, dataset, event


def set_revision(file: Path, revision: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.close()


def test_a_store_is_made_only_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "lumos.db"
    with pytest.raises(NoStore, match="lumos ingest"):
        Store.open(Database.sqlite(file))
    assert not file.parent.exists()
    Store.open(Database.sqlite(file), create=True).close()
    assert Database.sqlite(file).revision() == HEAD


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o600), (0o077, 0o600), (0o002, 0o660)])
def test_a_new_store_is_for_its_owner_or_for_a_group_that_shares_files(
    tmp_path: Path, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
        with store.transaction() as transaction:
            transaction.lineage.report("x", (), at=AT)
            found = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.glob("lumos.db*")}
        store.close()
    finally:
        os.umask(before)
    assert found == {"lumos.db": mode, "lumos.db-wal": mode, "lumos.db-shm": mode}


def test_the_permissions_of_a_store_that_is_there_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "lumos.db"
    file.touch(0o644)
    file.chmod(0o644)
    Store.open(Database.sqlite(file), create=True).close()
    assert file.stat().st_mode & 0o777 == 0o644


def test_the_log_is_merged_unless_somebody_reads(tmp_path: Path) -> None:
    file, log = tmp_path / "lumos.db", tmp_path / "lumos.db-wal"
    store = Store.open(Database.sqlite(file), create=True)
    assert log.stat().st_size > 0
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM dataset").fetchone() == (0,)
    with store.transaction() as transaction:
        transaction.lineage.report("x", (), at=AT)
    store.checkpoint()
    assert log.stat().st_size > 0
    reader.close()
    store.checkpoint()
    assert log.stat().st_size == 0
    store.close()


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", "lumos.store:migrations")
    scripts = list(ScriptDirectory.from_config(config).walk_revisions())
    assert tuple(script.revision for script in reversed(scripts)) == REVISIONS


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "lumos.db"
    Store.open(Database.sqlite(file), create=True).close()
    set_revision(file, "9999")
    with pytest.raises(StoreTooNew, match="pip install --upgrade lumos"):
        Store.open(Database.sqlite(file), create=True)
    with pytest.raises(StoreTooNew):
        Database.sqlite(file).upgrade()
    assert Database.sqlite(file).revision() == "9999"


def test_an_older_store_is_refused_until_upgraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lumos.db"
    Store.open(Database.sqlite(file), create=True).close()
    monkeypatch.setattr("lumos.store.database.HEAD", "9999")
    with pytest.raises(StoreTooOld, match="lumos db upgrade"):
        Store.open(Database.sqlite(file))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    with pytest.raises(StoreNotUsable, match=r"notes\.txt is not a Lumos store or is damaged"):
        Store.open(Database.sqlite(text))
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreNotUsable, match="not a Lumos store"):
        Store.open(Database.sqlite(foreign))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreNotUsable, match=r"storage\.path"):
        Store.open(Database.sqlite(tmp_path / "file" / "sub" / "lumos.db"), create=True)


def test_a_lock_that_does_not_go_away_gets_a_clear_sentence(tmp_path: Path) -> None:
    file = tmp_path / "lumos.db"
    Store.open(Database.sqlite(file), create=True).close()
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    impatient = Store(Database.sqlite(file, busy_seconds=0.1))
    with pytest.raises(StoreLocked, match="locked by another process"), impatient.transaction():
        pass
    holder.close()


def test_a_full_disk_gets_a_clear_sentence_and_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lumos.db"
    store = Store.open(Database.sqlite(file), create=True)
    with store.transaction() as transaction:
        transaction.save(dataset())

    def fill() -> None:
        with store.transaction() as transaction:
            # SQLite's own way to meet the end of the disk early.
            transaction._connection.exec_driver_sql("PRAGMA max_page_count = 1")
            for number in range(5000):
                transaction.save_event(event(f"e{number}"))

    with pytest.raises(StoreNotUsable, match="No space left"):
        fill()
    assert store.counts()["dataset"] == 1
    assert store.counts()["change_event"] == 0


def test_readers_go_on_while_a_writer_writes(tmp_path: Path) -> None:
    store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
    with store.transaction() as transaction:
        transaction.save(dataset())
        counted: list[int] = []
        reader = threading.Thread(target=lambda: counted.append(store.counts()["dataset"]))
        reader.start()
        reader.join()
    assert counted == [0]
    assert store.counts()["dataset"] == 1


def count_up(file: Path, times: int) -> None:
    """Steps one dataset's version and appends an event, as another process."""
    store = Store.open(Database.sqlite(file))
    for _ in range(times):
        with store.transaction() as transaction:
            known = transaction.known("lumos://file/lake/orders")
            assert known is not None
            number = int(known.cloud_version.removeprefix("S-")) + 1
            transaction.save(dataset(cloud_version=f"S-{number}"))
            transaction.save_event(event(f"{os.getpid()}-{number}"))


def test_two_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lumos.db"
    store = Store.open(Database.sqlite(file), create=True)
    with store.transaction() as transaction:
        transaction.save(dataset())
    store.close()
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=count_up, args=(file, 100)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    store = Store.open(Database.sqlite(file))
    assert store.get("lumos://file/lake/orders").versioning.cloud_version == "S-201"  # type: ignore[union-attr]
    assert store.counts()["change_event"] == 200


def test_times_keep_their_microseconds(tmp_path: Path) -> None:
    store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
    with store.transaction() as transaction:
        transaction.save(dataset())
    assert store.known(source="file:/lake")["lumos://file/lake/orders"].created_at == AT


def test_a_foreign_database_is_left_as_it_is(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(StoreNotUsable):
        Store.open(Database.sqlite(foreign), create=True)
    assert foreign.read_bytes() == before


def test_a_store_that_cannot_be_written_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lumos.db"
    store = Store.open(Database.sqlite(file), create=True)
    with store.transaction() as transaction:
        transaction.save(dataset())
    store.close()
    # Tests may run as root, who may write everywhere.
    monkeypatch.setattr("lumos.store.database.os.access", lambda *_: False)
    readable = Store.open(Database.sqlite(file))
    assert readable.get("lumos://file/lake/orders").name == "orders"
    with pytest.raises(StoreNotUsable, match="cannot be written"), readable.transaction() as writer:
        writer.save(dataset())


@pytest.mark.parametrize(
    ("free", "kind", "message"),
    [(4096, StoreNotUsable, "No space left on the disk"), (10**9, StoreError, "disk I/O error")],
)
def test_a_full_disk_is_distinguished_from_a_failing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, kind: type[StoreError], message: str
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    with pytest.raises(kind, match=message), translate_errors(str(tmp_path / "lumos.db")):
        raise sqlite3.OperationalError("disk I/O error")
