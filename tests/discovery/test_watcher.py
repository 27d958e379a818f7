"""Watching sources: what is watched, what is told, and what failures do."""

import itertools
import logging
import shutil
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos
from lumos.config.settings import ChangeDetection, Settings, WatchedSource
from lumos.config.sources import (
    FileSourceSettings,
    MongodbSourceSettings,
    PostgresSourceSettings,
    S3SourceSettings,
    SnowflakeSourceSettings,
)
from lumos.discovery import watcher as watcher_module
from lumos.discovery.reports import IngestReport, IngestSummary
from lumos.discovery.targets import source_name
from lumos.discovery.watch_status import EventStatus
from lumos.discovery.watcher import SourceWatcher, WatchReport, _ProblemLog, watched_sources
from lumos.errors import MisuseError
from lumos.model.change import EventType
from lumos.model.discovery import Problem
from lumos.schemas.changes import EventReport
from lumos.sources.events import EventSource, ReceivedMessage
from lumos.sources.events.factory import create_event_sources
from lumos.spark.session import SparkFailed, SparkNotUsable
from lumos.store import Store, StoreTooOld

EMPTY = IngestReport(
    summary=IngestSummary(), roots=(), datasets=(), missing=(), held=(), problems=()
)
DATABASE = PostgresSourceSettings(connection_string=None, host="db", tables=("a", "b"))


def settings(*watched: WatchedSource, **facts: Any) -> Settings:
    return Settings(change_detection=ChangeDetection(sources=watched), **facts)


def test_the_watched_sources_are_those_of_change_detection() -> None:
    folder = WatchedSource(source=FileSourceSettings(paths=("/lake",)), polling_interval=7)
    both = settings(folder, sources=(FileSourceSettings(paths=("/other",)),))
    assert list(watched_sources(both)) == [folder]


def test_without_change_detection_all_sources_are_watched() -> None:
    (only,) = watched_sources(Settings(sources=(FileSourceSettings(paths=("/lake",)),)))
    assert (only.source, only.polling_interval) == (FileSourceSettings(paths=("/lake",)), 300)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Settings(), "Nothing to watch. List sources"),
        (settings(WatchedSource(source=SnowflakeSourceSettings(account="a"))), "'snowflake'"),
        (
            Settings(
                change_detection=ChangeDetection(enabled=False),
                sources=(FileSourceSettings(paths=("/lake",)),),
            ),
            "enabled is false",
        ),
        (settings(WatchedSource(source=DATABASE, watch_tables=False)), "'watch_tables' is false"),
        (settings(WatchedSource(source=DATABASE, watch_tables=())), "'watch_tables' is .* empty"),
    ],
    ids=["nothing", "not installed", "forbidden", "no tables", "empty list"],
)
def test_where_nothing_can_be_watched_the_way_out_is_told(wrong: Settings, words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        list(watched_sources(wrong))


@pytest.mark.parametrize(("watch_tables", "watched"), [(True, ()), (("orders",), ("orders",))])
def test_of_a_database_only_the_watched_tables_are_read(
    watch_tables: bool | tuple[str, ...], watched: tuple[str, ...]
) -> None:
    (chosen,) = watched_sources(settings(WatchedSource(source=DATABASE, watch_tables=watch_tables)))
    assert isinstance(chosen.source, PostgresSourceSettings)
    assert (chosen.source.tables, chosen.source.watched) == (("a", "b"), watched)


def test_what_was_scanned_is_counted() -> None:
    summary = IngestSummary(
        datasets_new=1, datasets_changed=2, datasets_unchanged=4, datasets_missing=1
    )
    watcher = SourceWatcher(
        settings(WatchedSource(source=DATABASE), WatchedSource(source=DATABASE)),
        scan=lambda _section: msgspec.structs.replace(EMPTY, summary=summary),
        send=lambda: None,
        begun=lambda _source, _interval: None,
        started=lambda: None,
    )
    report = watcher.run(threading.Event(), once=True, interval=None)
    assert report == WatchReport(looks=2, failures=0, scans=2, datasets=14, changes=8)


def test_a_source_without_events_is_polled_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    wanted = WatchedSource(source=MongodbSourceSettings(host="mongo"), watch_mode="hybrid")
    assert list(create_event_sources([wanted])) == []
    assert "mongodb is polled every 300 s: there are no events" in caplog.text


def test_a_queue_that_cannot_exist_does_not_stop_the_other_sources(
    caplog: pytest.LogCaptureFixture,
) -> None:
    section = S3SourceSettings(buckets=("lake",))
    impossible, other = (
        WatchedSource(source=section, watch_mode="events", sqs_queue=queue)
        for queue in ("arn:aws:sqs:...", "queue")
    )
    ((events, watched),) = create_event_sources([impossible, other])
    assert (events.name, watched) == ("queue", [other])
    assert "s3 is polled every 300 s: 'arn:aws:sqs:...' is neither the ARN" in caplog.text


def test_events_that_cannot_be_received_at_first_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()

    class Forbidden(EventSource):
        name, root = "queue", "database"
        opened = 0

        def open(self) -> None:
            self.opened += 1
            if self.opened < 3:
                raise PermissionError("No credentials were found.")

        def receive(self, wait: float) -> list[ReceivedMessage]:
            stop.set()
            stop.wait(wait)
            return []

        def acknowledge(self, receipts: Sequence[str]) -> None:
            """Nothing to do."""

    queue, watched = Forbidden(), WatchedSource(source=DATABASE, watch_mode="events")
    monkeypatch.setattr(watcher_module, "_REOPEN_INTERVAL", 0.01)
    monkeypatch.setattr(
        watcher_module, "create_event_sources", lambda *_, **__: [(queue, [watched])]
    )
    watcher = SourceWatcher(
        settings(watched),
        scan=lambda _section: EMPTY,
        scan_changed=lambda _section, _changed: EMPTY,
        send=lambda: None,
        begun=lambda _source, _interval: None,
        started=lambda: None,
    )
    watcher.run(stop, once=False, interval=None)
    assert queue.opened == 3
    expected = "postgres db: polled until events can be received: No credentials were found."
    assert expected in caplog.text
    assert "queue is watched by events now." in caplog.text


class UnreliableQueue(EventSource):
    """A queue that exists or not."""

    def __init__(self, name: str, *, exists: bool) -> None:
        self.name, self.exists = name, exists

    def open(self) -> None:
        if not self.exists:
            raise PermissionError(f"There is no queue {self.name}.")

    def receive(self, wait: float) -> list[ReceivedMessage]:  # noqa: ARG002
        sleep(0.01)
        self.open()
        return []

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Nothing to do."""


def watch_queues(
    monkeypatch: pytest.MonkeyPatch, *queues: UnreliableQueue, scanned: Callable[[int], bool]
) -> tuple[list[EventStatus], int]:
    """Watch one source by queues until `scanned` returns True; all statuses, and the scans."""
    watched = WatchedSource(source=DATABASE, watch_mode="events", polling_interval=1)
    monkeypatch.setattr("lumos.discovery.event_consumer._MAX_WAIT", 0.01)
    monkeypatch.setattr(
        watcher_module, "create_event_sources", lambda *_, **__: [(q, [watched]) for q in queues]
    )
    stop, scans, statuses = threading.Event(), itertools.count(1), list[EventStatus]()

    def scan(_section: object) -> IngestReport:
        if scanned(next(scans)):
            stop.set()
        return EMPTY

    # Would otherwise never end where the source is not polled.
    limit = threading.Timer(20, stop.set)
    limit.start()
    SourceWatcher(
        settings(watched),
        scan=scan,
        scan_changed=lambda _section, _changed: EMPTY,
        send=lambda: None,
        begun=lambda _source, _interval: None,
        started=lambda: None,
        report_status=statuses.append,
    ).run(stop, once=False, interval=None)
    limit.cancel()
    return statuses, next(scans) - 1


def test_a_source_is_polled_while_one_of_its_queues_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queues = [UnreliableQueue("a", exists=True), UnreliableQueue("b", exists=False)]
    statuses, scans = watch_queues(monkeypatch, *queues, scanned=lambda number: number == 3)
    assert scans == 3
    problems = {each.name: each.problem for each in statuses}
    assert problems == {"a": "", "b": "There is no queue b."}


def test_a_source_is_polled_while_a_queue_is_lost_and_once_more_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = UnreliableQueue("a", exists=True)

    def scanned(number: int) -> bool:
        queue.exists = number >= 3
        return number == 4

    watch_queues(monkeypatch, queue, scanned=scanned)
    assert "There is no queue a. Its sources are polled until" in caplog.text
    assert "a is watched by events again." in caplog.text
    # Then events are enough.
    queue.exists = True
    monkeypatch.setattr(threading, "Timer", partial(_sooner, threading.Timer))
    assert watch_queues(monkeypatch, queue, scanned=lambda _number: False)[1] == 1


def _sooner(timer: Any, _seconds: float, stop: Callable[[], None]) -> Any:
    return timer(3, stop)


def test_the_error_of_a_missing_queue_names_its_own_bucket() -> None:
    buckets = S3SourceSettings(buckets=("mb1", "mb2"))
    watched = WatchedSource(source=buckets, watch_mode="events")
    found = list(create_event_sources([watched]))
    assert [(each._bucket, sources) for each, sources in found] == [  # type: ignore[attr-defined]
        ("mb1", [watched]), ("mb2", [watched]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (FileSourceSettings(paths=("/lake", "/pond")), "file /lake, /pond"),
        (FileSourceSettings(paths=("/lake",), name="lake"), "lake"),
        (DATABASE, "postgres db"),
    ],
)
def test_a_source_is_called_by_its_name_or_its_place(source: Any, name: str) -> None:
    assert source_name(source) == name


@pytest.fixture
def lake(spark: object, workplace: Path) -> Path:  # noqa: ARG001
    write_parquet(
        workplace / "lake/users/dt=2024-01-01/part-0.parquet", user_id=pa.string(), name=pa.string()
    )
    return workplace / "lake"


def watch(
    *folders: Path | str,
    then: Callable[[EventReport, threading.Event], None] = lambda _event, _stop: None,
    looks: int = 0,
    interval: float = 0.05,
    **options: Any,
) -> tuple[WatchReport, list[str]]:
    """Watches folders; `then` is called for each change and may stop the watch, as `looks` does."""
    stop, told = threading.Event(), []
    lumos = Lumos(overrides={"spark.master": "local[2]"})
    scan, scans = lumos._discovery._scan_unattended, itertools.count(1)

    def counted(*arguments: Any) -> IngestReport:
        report = scan(*arguments)
        if next(scans) == looks:
            stop.set()
        return report

    lumos._discovery._scan_unattended = counted  # type: ignore[method-assign]
    sources = tuple(
        WatchedSource(source=FileSourceSettings(paths=(str(each),))) for each in folders
    )
    lumos.settings = settings(*sources, storage=lumos.settings.storage)

    def tell(event: EventReport) -> None:
        told.append(f"{Path(event.urn).name} {event.type} {event.schema_version}")
        then(event, stop)

    report = lumos.watch(on_event=tell, stop=stop, interval=interval, **options)
    return report, told


def test_changes_are_told_one_by_one_as_they_happen(lake: Path) -> None:
    def go_on(event: EventReport, stop: threading.Event) -> None:
        match event.schema_version:
            case "1.0.0" if event.type is EventType.CREATED:
                columns = {"user_id": pa.string(), "name": pa.string(), "session_id": pa.string()}
                write_parquet(lake / "users/dt=2024-01-02/part-0.parquet", **columns)
            case "1.1.0":
                columns = {"user_id": pa.int64(), "name": pa.string(), "session_id": pa.string()}
                write_parquet(lake / "users/dt=2024-01-03/part-0.parquet", **columns)
            case _:
                stop.set()

    report, told = watch(lake, then=go_on)
    assert told == [
        "users CREATED 1.0.0",
        "users SCHEMA_CHANGED 1.1.0",
        "users SCHEMA_CHANGED 2.0.0",
    ]
    assert report.failures == 0


def test_a_source_that_is_not_there_stops_no_other_and_is_taken_up_when_it_comes(
    lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pond = lake.with_name("pond")

    def go_on(event: EventReport, stop: threading.Event) -> None:
        if "/lake/" in event.urn:
            shutil.copytree(lake / "users", pond / "ducks")
        else:
            stop.set()

    report, told = watch(pond, lake, then=go_on)
    assert told == ["users CREATED 1.0.0", "ducks CREATED 1.0.0"]
    assert report.failures == 1
    assert "There is nothing at" in caplog.text
    assert "Failure 1, next try in" in caplog.text


def test_looks_that_find_nothing_new_leave_no_trace_in_the_store(lake: Path) -> None:
    rows: list[dict[str, int]] = []
    report, _ = watch(lake, looks=5)
    lumos = Lumos()
    rows.append(lumos.store_status().rows)
    assert report.looks == 5
    again, _ = watch(lake, once=True)
    assert (again.looks, again.scans, again.datasets, again.changes) == (1, 1, 1, 0)
    rows.append(lumos.store_status().rows)
    assert rows[0] == rows[1]
    assert rows[0]["audit"] == 1


def test_a_broken_file_is_told_once(lake: Path, caplog: pytest.LogCaptureFixture) -> None:
    (lake / "users/dt=2024-01-01/broken.parquet").write_bytes(b"PAR1 no footer")

    report, _ = watch(lake, looks=3)
    assert report.looks == 3
    assert caplog.text.count("broken.parquet") == 1


def test_a_source_that_somebody_else_scans_is_passed_over(
    lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lumos")
    lumos = Lumos()
    store = Store.open(lumos.database, create=True)
    with store.lock(f"file:{lake}"):
        report, told = watch(lake, once=True)
    assert (report.failures, told) == (0, [])
    assert "Skipped: Another scan" in caplog.text


def test_a_store_that_cannot_be_used_is_told_at_once(workplace: Path) -> None:
    (workplace / "lumos.yaml").write_text("sources: [{type: file, path: lake}]\n")
    lumos = Lumos()
    Store.open(lumos.database, create=True)
    with lumos.database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(StoreTooOld, match="lumos db upgrade"):
        lumos.watch()


def test_a_failure_of_spark_is_a_failure_of_one_look(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lumos.discovery.lake.job as discovery

    works = discovery.scan_lake
    failing = iter([True])

    def discover(*words: Any, **options: Any) -> Any:
        if next(failing, False):
            raise SparkFailed("Spark failed: no room")
        return works(*words, **options)

    monkeypatch.setattr(discovery, "scan_lake", discover)
    report, told = watch(lake, then=lambda _event, stop: stop.set())
    assert (report.looks, report.failures, told) == (2, 1, ["users CREATED 1.0.0"])


def test_a_database_is_watched_without_spark_and_only_its_watched_tables(
    workplace: Path, empty_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    def execute(statement: str) -> None:
        with psycopg.connect(empty_postgres, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    monkeypatch.setattr("lumos.spark.session.spark_session", None)
    execute("CREATE TABLE orders (id int)")
    execute("CREATE TABLE logs (id int)")
    (workplace / "lumos.yaml").write_text(
        "change_detection:\n"
        "  sources:\n"
        f"    - {{type: postgres, connection_string: '{empty_postgres}', schemas: [public],\n"
        "       watch_tables: [orders]}\n"
        f"sources: [{{type: postgres, connection_string: '{empty_postgres}'}}]\n"
    )
    lumos, stop, told = Lumos(), threading.Event(), []
    lumos.ingest()

    def go_on(event: EventReport) -> None:
        told.append((Path(event.urn).name, event.type.value, event.schema_version))
        if len(told) == 1:
            execute("ALTER TABLE orders ALTER COLUMN id TYPE text")
        else:
            stop.set()

    execute("ALTER TABLE orders ADD COLUMN city text")
    execute("ALTER TABLE logs ADD COLUMN city text")
    report = lumos.watch(on_event=go_on, stop=stop, interval=0.05)
    assert report.failures == 0
    assert told == [("orders", "SCHEMA_CHANGED", "1.1.0"), ("orders", "SCHEMA_CHANGED", "2.0.0")]
    assert sorted(each.name for each in lumos.list().datasets) == [
        "public.logs",
        "public.orders",
    ]


def test_who_is_told_to_stop_beforehand_starts_no_spark(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.spark.session.spark_session", None)
    (workplace / "lumos.yaml").write_text("sources: [{type: file, path: lake}]\n")
    stop = threading.Event()
    stop.set()
    assert Lumos().watch(stop=stop).looks == 0


def test_without_java_databases_are_watched_all_the_same(
    workplace: Path,
    empty_postgres: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(**_options: object) -> None:
        raise SparkNotUsable("Spark needs Java 17 and none was found.")

    monkeypatch.setattr("lumos.spark.session.spark_session", refuse)
    write_parquet(workplace / "lake/users.parquet", user_id=pa.string())
    (workplace / "lumos.yaml").write_text(
        "sources:\n"
        "  - {type: file, path: lake}\n"
        f"  - {{type: postgres, connection_string: '{empty_postgres}'}}\n"
    )
    report = Lumos().watch(once=True)
    assert (report.looks, report.failures) == (2, 1)
    assert "Only databases are watched until Spark starts: Spark needs Java" in caplog.text
    (workplace / "lumos.yaml").write_text("sources: [{type: file, path: lake}]\n")
    with pytest.raises(SparkNotUsable):
        Lumos().watch(once=True)


def test_what_is_wrong_is_told_once_for_each_of_two_sources_of_one_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def report(path: str) -> IngestReport:
        problem = Problem(path=path, reason="it is locked", code="locked")
        return msgspec.structs.replace(EMPTY, problems=(problem,))

    first, second = _ProblemLog(), _ProblemLog()
    for _ in range(3):
        first.log_new("postgres db", report("shop/sales/a"))
        second.log_new("postgres db", report("shop/public/b"))
    assert caplog.text.count("it is locked") == 2


def test_missing_datasets_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    held = tuple(f"lumos://file/lake/{name}" for name in "abcde")
    problems = _ProblemLog()
    for _ in range(2):
        problems.log_new("lake", msgspec.structs.replace(EMPTY, held=held))
    text = "5 datasets of lake cannot be found, too many to be recorded as deleted: a, b, c and 2 more."
    assert caplog.text.count(text) == 1
