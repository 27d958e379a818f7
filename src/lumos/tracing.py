"""OpenTelemetry traces of requests, jobs and transactions of the store (`pip install lumos[otel]`).

`lumos serve` and `lumos worker` export spans if an environment variable of OpenTelemetry, such as
OTEL_EXPORTER_OTLP_ENDPOINT, names a collector. In a program that uses OpenTelemetry itself, spans
of Lumos become part of its traces. In all other processes OpenTelemetry is not imported.

Spans contain routes, kinds and states, but never queries, bodies, messages or tokens.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final, Literal

from lumos.version import __version__

SpanKind = Literal["internal", "server", "client", "consumer"]
AttributeValue = str | int | float | bool
_NO_ATTRIBUTES: Final[Mapping[str, AttributeValue]] = MappingProxyType({})
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORT_SECONDS: Final = 5
_log = logging.getLogger(__name__)
_IS_SUPPRESSED: ContextVar[bool] = ContextVar("lumos_untraced", default=False)


class TraceSpan:
    """A span whose name and attributes can be changed; without a tracer, it does nothing."""

    def __init__(self, otel_span: Any = None) -> None:
        self._otel_span = otel_span

    @property
    def trace_id(self) -> str:
        """The id of the trace as 32 hexadecimal digits; empty without a tracer."""
        if self._otel_span is None:
            return ""
        context = self._otel_span.get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else ""

    def rename(self, name: str) -> None:
        if self._otel_span is not None:
            self._otel_span.update_name(name)

    def set(self, attributes: Mapping[str, AttributeValue]) -> None:
        if self._otel_span is not None:
            self._otel_span.set_attributes(attributes)

    def fail(self, reason: str) -> None:
        """Mark the span as failed; `reason` is a category, such as the type of an exception."""
        if self._otel_span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._otel_span.set_status(Status(StatusCode.ERROR, reason))


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, AttributeValue] = _NO_ATTRIBUTES,
    *,
    kind: SpanKind = "internal",
    parent: Mapping[str, str] | None = None,
    requires_parent: bool = False,
) -> Iterator[TraceSpan]:
    """Trace the block; `parent` are headers of the caller, such as `traceparent`.

    With `requires_parent`, the block is only traced inside another span, so that polling for work
    does not flood a collector.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if (
        trace is None
        or _IS_SUPPRESSED.get()
        or (requires_parent and not trace.get_current_span().is_recording())
    ):
        yield TraceSpan()
        return
    from opentelemetry import propagate

    with trace.get_tracer("lumos", __version__).start_as_current_span(
        name,
        context=None if parent is None else propagate.extract(parent),
        kind=trace.SpanKind[kind.upper()],
        attributes=attributes,
        # Not recorded, since error messages may quote input of users.
        record_exception=False,
        set_status_on_exception=False,
    ) as otel_span:
        current = TraceSpan(otel_span)
        try:
            yield current
        except Exception as problem:
            current.fail(type(problem).__name__)
            raise


@contextmanager
def without_tracing() -> Iterator[None]:
    """Do not trace the block; for work that repeats every few seconds."""
    token = _IS_SUPPRESSED.set(True)
    try:
        yield
    finally:
        _IS_SUPPRESSED.reset(token)


def trace_headers() -> dict[str, str] | None:
    """The headers with which another process continues the current trace, if there is one."""
    headers: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry import propagate

        propagate.inject(headers)
    return headers or None


def start_tracing(process: str, environment: Mapping[str, str]) -> Callable[[], None]:
    """Export the spans of this process if the environment names a collector.

    Returns a function that sends the spans that have not been sent yet.
    """
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or not any(environment.get(name) for name in _ENDPOINTS):
        return lambda: None
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as problem:
        _log.warning(
            "Traces are not exported: %s is not installed. Run: pip install 'lumos[otel]'",
            problem.name,
        )
        return lambda: None
    facts = {"service.version": __version__, "lumos.process": process}
    if not environment.get("OTEL_SERVICE_NAME"):
        facts["service.name"] = "lumos"
    provider = TracerProvider(resource=Resource.create(facts))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_EXPORT_SECONDS)))
    trace.set_tracer_provider(provider)

    def flush() -> None:
        provider.force_flush(_EXPORT_SECONDS * 1000)

    return flush
