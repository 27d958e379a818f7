"""What is particular to Redis Streams: claims of idle messages, bounds, and a server that goes away."""

import logging
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

redis = pytest.importorskip("redis", reason="redis-py is not installed: pip install 'lumos[redis]'")
from lumos.jobs.redis_transport import RedisTransport  # noqa: E402

NEVER = threading.Event()


def transport(url: str, stream: str, idle: float = 60) -> RedisTransport:
    return RedisTransport(url, stream=stream, idle_seconds=idle, poll_seconds=0.01)


@pytest.fixture
def stream() -> str:
    return f"jobs:{uuid.uuid4().hex}"


def test_a_message_wakes_one_worker(redis_url: str, stream: str) -> None:
    first, second = transport(redis_url, stream), transport(redis_url, stream)
    first.announce()
    message = first.wait(5, NEVER)
    assert message is not None
    assert second.wait(0.01, NEVER) is None
    assert second.pending() == 1
    message.settle()
    assert second.pending() == 0
    assert redis.Redis.from_url(redis_url).xlen(stream) == 0


def test_the_message_of_a_vanished_worker_is_claimed_by_another(
    redis_url: str, stream: str
) -> None:
    vanished, other = transport(redis_url, stream), transport(redis_url, stream, idle=0)
    vanished.announce()
    assert vanished.wait(5, NEVER) is not None
    claimed = other.wait(5, NEVER)
    assert claimed is not None
    claimed.settle()
    assert other.pending() == 0


def test_a_worker_that_is_alive_keeps_its_message(redis_url: str, stream: str) -> None:
    busy = transport(redis_url, stream)
    busy.announce()
    message = busy.wait(5, NEVER)
    assert message is not None
    server = redis.Redis.from_url(redis_url)
    (before,) = server.xpending_range(stream, "workers", "-", "+", 1)
    # As if it had been idle for an hour.
    server.execute_command(
        "XCLAIM", stream, "workers", before["consumer"], 0, before["message_id"], "IDLE", 3_600_000
    )
    message.refresh()
    other = transport(redis_url, stream)
    assert other.wait(0.01, NEVER) is None


def test_the_stream_is_bounded(redis_url: str, stream: str) -> None:
    one = transport(redis_url, stream)
    for _ in range(12):
        one.announce(1_000)
    assert redis.Redis.from_url(redis_url).xlen(stream) <= 10_200


def test_a_group_that_redis_lost_is_created_again(redis_url: str, stream: str) -> None:
    one = transport(redis_url, stream)
    one.announce()
    assert one.wait(5, NEVER) is not None
    redis.Redis.from_url(redis_url).delete(stream)
    one.announce()
    assert one.wait(5, NEVER) is not None


def test_without_redis_jobs_are_polled_and_a_warning_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = RedisTransport(
        "redis://ann:hush-hush@127.0.0.1:1/0", stream="x", idle_seconds=60, poll_seconds=0.01
    )
    with caplog.at_level(logging.WARNING):
        one.announce()
        assert one.wait(5, NEVER) is None
        assert one.wait(5, NEVER) is None
    assert len(caplog.records) == 1
    assert "hush-hush" not in caplog.text


def test_a_restarted_redis_is_used_again(tmp_path: Path, redis_url: str, stream: str) -> None:
    del redis_url  # skips where there is no Redis
    script = Path(__file__).parents[2] / "scripts" / "redis"

    def start(port: str = "") -> str:
        environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "REDIS_PORT": port}
        environment = {name: value for name, value in environment.items() if value}
        command = [script, "start", tmp_path]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()

    def kill() -> None:
        subprocess.run(["kill", "-9", (tmp_path / "pid").read_text().strip()], check=True)

    url = start()
    one = transport(url, stream)
    one.announce()
    assert one.wait(5, NEVER) is not None
    kill()
    one.announce()
    assert one.wait(0.1, NEVER) is None
    start(url.rpartition(":")[2].partition("/")[0])
    one.announce()
    assert one.wait(5, NEVER) is not None
    one.close()
    kill()
