"""A real server process: events, shutdown, concurrency."""

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.server.client import connect
from lumos.server.run import serve
from server.live_server import live_server


def events_in(lines: list[str]) -> list[dict[str, str]]:
    """The events among the lines of a stream."""
    found: list[dict[str, str]] = [{}]
    for line in lines:
        if not line:
            found.append({})
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[-1][name] = value
    return [each for each in found if "data" in each]


def test_changes_arrive_as_events_and_a_client_resumes_after_the_last_one(folder: Path) -> None:
    lumos = Lumos(folder / "lumos.yaml")
    with live_server(folder) as server:
        url = f"{server.url}/api/v1/changes/events"

        def follow(count: int, headers: dict[str, str]) -> list[dict[str, str]]:
            lines: list[str] = []
            with httpx.stream("GET", url, headers=headers, timeout=30) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                for line in response.iter_lines():
                    lines.append(line)
                    if line.startswith(":") and not headers:
                        ready.set()
                    if len(events_in(lines)) == count:
                        break
            return events_in(lines)

        ready = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(follow, 2, {})
            assert ready.wait(30)
            # Written by another process than the server's.
            lumos.annotations.tags.set("orders", "first")
            lumos.annotations.tags.set("orders", "second")
            events = following.result(60)
        assert [each["event"] for each in events] == ["METADATA_CHANGED"] * 2
        summaries = [json.loads(each["data"])["summary"] for each in events]
        assert summaries == ["tag first added", "tag second added"]
        (resumed,) = follow(1, {"Last-Event-ID": events[0]["id"]})
        assert resumed == events[1]
        wrong = httpx.get(url, headers={"Last-Event-ID": "x"})
        assert wrong.status_code == 400


def test_a_job_is_followed_until_it_has_ended(folder: Path) -> None:
    with live_server(folder) as server:
        job = Lumos(folder / "lumos.yaml").run("version:scan", detach=True)
        url = f"{server.url}/api/v1/jobs/events"
        with httpx.stream("GET", url, params={"id": job.id}, timeout=60) as response:
            events = events_in(list(response.iter_lines()))
        states = [json.loads(each["data"])["state"] for each in events if each["event"] == "job"]
        assert states[-1] == "succeeded"
        log = [json.loads(each["data"])["text"] for each in events if each["event"] == "log"]
        assert log[-1] == "Succeeded."
        assert len(log) == len(set(log))
        assert httpx.get(url, params={"id": "x"}).status_code == 400
        assert httpx.get(url, params={"id": 99}).status_code == 404


def test_many_clients_read_and_write_at_once(folder: Path) -> None:
    with live_server(folder) as server:
        remote = connect(server.url)

        def work(number: int) -> int:
            remote.annotations.tags.set("orders", f"tag-{number}")
            return len(remote.search("order").results)

        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(work, range(40))) == {1}
        tags = remote.show("orders").dataset["governance"]["tags"]
        assert {f"tag-{number}" for number in range(40)} <= set(tags)
        report = remote.audit.verify()
    assert (report.problems, report.rows >= 40) == ((), True)


def test_logs_are_json_lines_and_a_terminated_server_stops(folder: Path) -> None:
    with live_server(folder) as server:
        httpx.get(f"{server.url}/health")
        begun = time.monotonic()
        server.process.terminate()
        server.process.wait(20)
        assert time.monotonic() - begun < 15
        lines = [json.loads(line) for line in server.log if line.startswith("{")]
    requests = [each for each in lines if each["message"] == "request"]
    assert [(each["route"], each["status"]) for each in requests] == [("/health", 200)]
    assert len(requests[0]["request_id"]) == 32


def test_a_port_in_use_is_reported(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        lumos = Lumos(folder / "lumos.yaml")
        with pytest.raises(MisuseError, match="Choose another port with: lumos serve --port N"):
            serve(lumos, port=port)


def test_the_python_example_of_the_page_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs/SERVER.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    Lumos(folder / "lumos.yaml").annotations.tags.set("orders", "pii")
    with live_server(folder) as server:
        exec(example.replace("http://127.0.0.1:8765", server.url), {})
    assert "pii" in capsys.readouterr().out
