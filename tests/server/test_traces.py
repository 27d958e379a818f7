"""OpenTelemetry traces, sent to a collector by a real server and the processes of its jobs."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

from lumos import Lumos
from server.live_server import live_server

pytest.importorskip("opentelemetry.sdk", reason="pip install 'lumos[otel]'")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SECRET = "hunter2-planted"


class Collector(ThreadingHTTPServer):
    """Receives spans over OTLP and HTTP, as a collector of OpenTelemetry does."""

    daemon_threads = True

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Intake)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_for(self, *names: str) -> dict[str, dict[str, Any]]:
        """The last span of each name, once all have arrived."""
        deadline = monotonic() + 90
        while monotonic() < deadline:
            found = {each["name"]: each for each in list(self.spans)}
            if set(names) <= set(found):
                return found
            sleep(0.1)
        raise AssertionError(sorted({each["name"] for each in self.spans}))


class _Intake(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            facts = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.server.spans += [
                    {
                        "name": each.name,
                        "process": facts["lumos.process"],
                        "service": facts["service.name"],
                        "trace": each.trace_id.hex(),
                        "id": each.span_id.hex(),
                        "parent": each.parent_span_id.hex(),
                        "failed": each.status.code == 2,
                        "text": str(each),
                        "attributes": {one.key: one.value for one in each.attributes},
                    }
                    for each in scope.spans
                ]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_words: Any) -> None:
        """Write nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            collector.shutdown()


@pytest.mark.slow
def test_requests_jobs_and_the_store_are_traced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        with live_server(folder) as server:
            headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            query = {"urn": "orders"}
            shown = f"{server.url}/api/v1/datasets/show"
            assert httpx.get(shown, params=query, headers=headers).status_code == 200
            assert httpx.get(shown, params={"urn": SECRET}).status_code == 404
            httpx.post(f"{server.url}/api/v1/jobs", json={"kind": "version"})
            spans = collector.wait_for(
                "GET /api/v1/datasets/show", "POST /api/v1/jobs", "job version", "run version"
            )
            lines = "".join(server.log)
    request = next(
        each for each in collector.spans if each["trace"] == TRACE and "GET" in each["name"]
    )
    assert (request["name"], request["parent"]) == ("GET /api/v1/datasets/show", CALLER)
    assert (request["service"], request["process"]) == ("lumos", "server")
    assert request["attributes"]["http.response.status_code"].int_value == 200
    reads = [each for each in collector.spans if each["trace"] == TRACE and each is not request]
    assert {each["name"] for each in reads} == {"store read"}
    assert {each["parent"] for each in reads} == {request["id"]}
    assert f'"trace_id":"{TRACE}"' in lines.replace('": "', '":"')
    # The job runs in a process of its own, whose spans belong to the trace of the job.
    job, run = spans["job version"], spans["run version"]
    assert (run["trace"], run["parent"]) == (job["trace"], job["id"])
    assert (job["process"], run["process"]) == ("server", "job")
    assert job["attributes"]["lumos.outcome"].string_value == "succeeded"
    in_child = [each for each in collector.spans if each["parent"] == run["id"]]
    assert {each["name"] for each in in_child} <= {"store read", "store write"}
    assert in_child
    # Looking for work is not traced.
    assert not [each for each in collector.spans if "store" in each["name"] and not each["parent"]]
    assert not [each["text"] for each in collector.spans if SECRET in each["text"]]


def test_without_a_collector_nothing_of_opentelemetry_is_imported(folder: Path) -> None:
    code = (
        "import sys; from lumos import Lumos; from lumos.tracing import start_tracing\n"
        "start_tracing('server', {}); Lumos('lumos.yaml').show('orders')\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_failing_job_is_marked(folder: Path) -> None:
    with collecting() as collector:
        lumos = Lumos(folder / "lumos.yaml")
        job = lumos.jobs.submit("lineage", {"paths": [f"/no/{SECRET}"]}, max_attempts=1)
        environment = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_SERVICE_NAME": "metadata",
        }
        command = [sys.executable, "-m", "lumos", "worker", "--once"]
        subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True)
        spans = collector.wait_for("job lineage", "run lineage")
    assert lumos.jobs.show(job.id).state == "failed"
    assert spans["job lineage"]["failed"]
    assert spans["run lineage"]["failed"]
    assert spans["job lineage"]["service"] == "metadata"
    assert not [each["text"] for each in collector.spans if SECRET in each["text"]]
