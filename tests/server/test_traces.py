"""OpenTelemetry traces, in this process and as real servers and jobs send them to a collector."""

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

from jobs.conftest import MISTAKE, SUCCESS, ScriptedRunner, quick
from lumos import Lumos
from lumos.jobs.runner import AnyJobEvent
from lumos.jobs.store_transport import PollingTransport
from lumos.jobs.worker import JobWorker
from server.live_server import live_server

pytest.importorskip("opentelemetry.sdk", reason="pip install 'lumos[otel]'")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"
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


@pytest.fixture(scope="module")
def exporter() -> Iterator[Any]:
    """The spans of this process."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    trace.set_tracer_provider(provider)
    yield memory
    provider.shutdown()


def test_a_job_continues_the_trace_of_the_request_that_queued_it(
    lumos: Lumos, client: Any, exporter: Any
) -> None:
    registry = lumos.create_store().jobs

    def send(path: str, body: dict[str, Any], trace: str) -> Any:
        headers = {"traceparent": f"00-{trace}-{CALLER}-01"}
        answer = client.post(f"/api/v1/jobs{path}", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["id"]

    def run(event: AnyJobEvent) -> None:
        exporter.clear()
        JobWorker(
            registry,
            PollingTransport(1),
            quick(),
            make_runner=lambda: ScriptedRunner(lambda _job: event),
            fire=lambda: 0,
        ).run_once()

    def job_span() -> tuple[str, str]:
        (found,) = [each for each in exporter.get_finished_spans() if each.name == "job version"]
        return f"{found.context.trace_id:032x}", f"{found.parent.span_id:016x}"

    def request_span(name: str) -> str:
        spans = exporter.get_finished_spans()
        return next(f"{each.context.span_id:016x}" for each in spans if each.name == name)

    id = send("", {"kind": "version"}, TRACE)
    parent = request_span("POST /api/v1/jobs")
    run(MISTAKE)
    assert job_span() == (TRACE, parent)
    # A retry is another request.
    send("/retry", {"id": id}, OTHER_TRACE)
    parent = request_span("POST /api/v1/jobs/retry")
    run(SUCCESS)
    assert job_span() == (OTHER_TRACE, parent)


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
            queued = httpx.post(f"{server.url}/api/v1/jobs", json={"kind": "version"})
            assert queued.status_code == 200
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
    # The job runs in a process of its own, in the trace of the request that queued it.
    submit, job, run = spans["POST /api/v1/jobs"], spans["job version"], spans["run version"]
    assert (job["trace"], job["parent"]) == (submit["trace"], submit["id"])
    assert (run["trace"], run["parent"]) == (submit["trace"], job["id"])
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
