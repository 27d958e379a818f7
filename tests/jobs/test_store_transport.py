"""What is particular to the store as transport, and how the configuration chooses one."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from jobs.conftest import request
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.jobs.redis_transport import RedisTransport
from lumos.jobs.store_transport import PollingTransport, PostgresTransport
from lumos.store import Database, JobRegistry, Store, StoreNotUsable

NEVER = threading.Event()


def test_postgres_notifies_when_the_transaction_of_a_job_commits(emptied_postgres: str) -> None:
    database = Database.postgres(emptied_postgres)
    Store.open(database, create=True)
    transport = PostgresTransport(database)
    transport.subscribe()
    registry = JobRegistry(database)
    with database.writing() as connection:
        registry.insert(connection, request())
        assert transport.wait(0.01, NEVER) is None
    assert transport.wait(30, NEVER) is not None
    assert transport.wait(0.01, NEVER) is None
    transport.close()
    database.engine.dispose()


def test_a_listener_connects_again_after_its_connection_was_lost(emptied_postgres: str) -> None:
    database = Database.postgres(emptied_postgres)
    Store.open(database, create=True)
    transport = PostgresTransport(database)
    transport.subscribe()
    end = text(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE query LIKE 'LISTEN%' AND datname = current_database()"
    )
    with database.writing() as connection:
        assert connection.execute(end).scalar()
    with pytest.raises(StoreNotUsable):
        transport.wait(5, NEVER)
    transport.subscribe()
    JobRegistry(database).submit(request())
    assert transport.wait(30, NEVER) is not None
    transport.close()
    database.engine.dispose()


def test_a_stopped_worker_does_not_wait() -> None:
    stop = threading.Event()
    stop.set()
    assert PollingTransport(3600).wait(3600, stop) is None


def test_threads_of_one_process_wake_each_other() -> None:
    transport = PollingTransport(3600)
    transport.announce(1_000_000)
    assert transport.wait(3600, NEVER) is not None
    assert transport.wait(0.01, NEVER) is None


@pytest.mark.usefixtures("workplace")
def test_the_configuration_chooses_the_transport(redis_url: str) -> None:
    redis = {"jobs.transport": "redis", "jobs.redis_url": redis_url}
    assert isinstance(Lumos().jobs._transport, PollingTransport)
    chosen = Lumos(overrides=redis)
    assert isinstance(chosen.jobs._transport, RedisTransport)
    queued = chosen.run("version:scan", detach=True)
    assert chosen.jobs.work(once=True).succeeded == 1
    assert chosen.jobs.show(queued.id).state == "succeeded"


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{transport: redis}", "requires 'redis_url'"),
        ("{transport: kafka}", "transport"),
        ("{transport: redis, redis_url: 'http://x'}", "redis://host:6379/0"),
        ("{lease_seconds: 1}", "lease_seconds"),
        ("{max_attempts: 0}", "max_attempts"),
        ("{limits: {'source:*': 0}}", "limits"),
        ("{leese_seconds: 60}", "lease_seconds"),
    ],
)
def test_bad_settings_are_rejected(workplace: Path, section: str, words: str) -> None:
    (workplace / "lumos.yaml").write_text(f"jobs: {section}\n")
    with pytest.raises(MisuseError, match=words):
        Lumos()


def test_the_password_of_redis_is_masked(workplace: Path) -> None:
    url = "rediss://ann:hush-hush@cache.example.com:6379/0"
    (workplace / "lumos.yaml").write_text(f"jobs: {{transport: redis, redis_url: '{url}'}}\n")
    shown = str(Lumos().settings.to_masked_dict())
    assert "cache.example.com" in shown
    assert "hush-hush" not in shown


def test_limits_apply_by_pattern(workplace: Path) -> None:
    (workplace / "lumos.yaml").write_text("jobs: {limits: {'catalog:*': 4, '*': 2}}\n")
    lumos = Lumos()
    for step, key, limit in (
        ("sync:datahub", "catalog:datahub", 4),
        ("profile:orders", "profile:orders", 2),
        ("export:x.json", None, 1),
    ):
        job = lumos.run(step, detach=True)
        assert (job.concurrency_key, job.concurrency_limit) == (key, limit)
