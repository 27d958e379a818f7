"""Metrics and log lines of requests, without queries, bodies or tokens."""

import logging
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lumos.tracing import TraceSpan, span

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message

    from lumos.discovery.watch_status import WatchStatusReport

LOG: Final = logging.getLogger("lumos.server")
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SERVER_ERROR: Final = 500
_STREAM: Final = "/events"
# The metrics of each event source of `lumos watch`.
_WATCH_METRICS: Final = {
    "lag_seconds": "95th percentile of the seconds from a change until it was recorded",
    "buffered_messages": "Messages in the memory of the watcher",
    "waiting_messages": "Messages in the queue",
    "dead_messages": "Messages in the dead-letter queue",
    "missed_changes": "Changes without an event, since the watcher was started",
    "malformed_messages": "Messages that cannot be parsed, since the watcher was started",
    "failed_batches": "Batches that had to be repeated, since the watcher was started",
    "updated_timestamp_seconds": "When the watcher last wrote its status",
}


class Metrics:
    """The Prometheus metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "lumos_http_requests",
            "Answered requests",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "lumos_http_request_seconds",
            "Seconds until the answer was complete",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.running = Gauge(
            "lumos_http_requests_running", "Requests in progress", registry=self._registry
        )
        self.streams = Gauge(
            "lumos_event_streams", "Open streams of events", registry=self._registry
        )

        self._watch = {
            name: Gauge(f"lumos_watch_{name}", text, ("event_source",), registry=self._registry)
            for name, text in _WATCH_METRICS.items()
        }

    def set_watch_status(self, report: "WatchStatusReport") -> None:
        """Set the metrics of watchers from their status in the store."""
        for gauge in self._watch.values():
            gauge.clear()
        for each in report.event_sources:
            values = {
                "lag_seconds": each.lag_p95_seconds,
                "buffered_messages": each.buffered,
                "waiting_messages": each.waiting,
                "dead_messages": each.dead,
                "missed_changes": each.counts.missed,
                "malformed_messages": each.counts.malformed,
                "failed_batches": each.counts.failed_batches,
                "updated_timestamp_seconds": None
                if each.updated_at is None
                else each.updated_at.timestamp(),
            }
            for name, value in values.items():
                if value is not None:
                    self._watch[name].labels(each.name).set(value)

    def text(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class RequestLog:
    """ASGI middleware that adds a request id, a log line and metrics to each request."""

    def __init__(self, app: "ASGIApp", metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = _SERVER_ERROR
        started_at = time.perf_counter()

        async def send_with_id(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message["headers"] = headers
            await send(message)

        self._metrics.running.inc()
        trace_id = ""
        try:
            # No span for event streams: it would not end before the client disconnects.
            if scope["path"].endswith(_STREAM):
                await self._app(scope, receive, send_with_id)
            else:
                with span(scope["method"], kind="server", parent=_headers(scope)) as traced:
                    trace_id = traced.trace_id
                    await self._app(scope, receive, send_with_id)
                    _describe(traced, scope, status, request_id)
        finally:
            self._metrics.running.dec()
            seconds = time.perf_counter() - started_at
            # Use the template instead of the path, so that clients cannot create new label values.
            route = scope.get("path_template") or "unknown"
            method = scope["method"] if route != "unknown" else "any"
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(method, route).observe(seconds)
            LOG.info(
                "request",
                extra={
                    "facts": {
                        "request_id": request_id,
                        "method": scope["method"],
                        "route": route,
                        "status": status,
                        "milliseconds": round(seconds * 1000, 1),
                        "client": (scope.get("client") or ("", 0))[0],
                        "actor": state.get("actor", ""),
                        **({"trace_id": trace_id} if trace_id else {}),
                    }
                },
            )


def _headers(scope: Any) -> dict[str, str]:
    """The headers of a request that identify its trace."""
    names = {b"traceparent": "traceparent", b"tracestate": "tracestate"}
    return {
        names[name]: bytes(value).decode("latin-1")
        for name, value in scope["headers"]
        if name in names
    }


def _describe(traced: TraceSpan, scope: Any, status: int, request_id: str) -> None:
    route = scope.get("path_template") or "unknown"
    traced.rename(f"{scope['method']} {route}")
    traced.set(
        {
            "http.request.method": scope["method"],
            "http.route": route,
            "http.response.status_code": status,
            "lumos.request_id": request_id,
        }
    )
    if status >= _SERVER_ERROR:
        traced.fail(str(status))


def _request_id(scope: Any) -> str:
    """The id that the client sent, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.match(value):
            return bytes(value).decode()
    return uuid.uuid4().hex
