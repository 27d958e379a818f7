"""The Litestar application: handlers for all routes of the table, and for health, metrics etc."""

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from litestar import HttpMethod, Litestar, Request, Response
from litestar.config.compression import CompressionConfig
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.response import ServerSentEvent, ServerSentEventMessage, Stream

from lumos.access.roles import includes
from lumos.config.secret import redact
from lumos.config.switches import FeatureDisabled, Switches
from lumos.errors import (
    CatalogError,
    LumosError,
    MissingDependency,
    MisuseError,
    UnknownName,
)
from lumos.jobs.reports import JobReport
from lumos.jobs.service import UnknownJob
from lumos.lineage.reports import LineageIngestReport
from lumos.model.job import FINISHED_STATES, JobLogLine
from lumos.model.json_codec import decode_json, to_json
from lumos.names import NoMatchingDataset
from lumos.sdk import Lumos
from lumos.server import page
from lumos.server.change_feed import POLL_SECONDS, ChangeFeed
from lumos.server.dispatch import Dispatcher, PreconditionFailed, TookTooLong
from lumos.server.identity import (
    Authenticator,
    Identity,
    NotAllowed,
    NotAuthenticated,
    OidcVerifier,
    Peer,
    ProviderUnavailable,
    RateLimiter,
)
from lumos.server.openapi import NDJSON, ExtraRoute, document
from lumos.server.routes import PREFIX, ROUTES, Route
from lumos.server.telemetry import LOG, Metrics, RequestLog
from lumos.server.wire import (
    PROBLEM,
    REPORT_HEADER,
    InvalidArguments,
    from_body,
    from_query,
    problem_of,
)
from lumos.store.errors import AmbiguousName, StoreError, UnknownDataset
from lumos.store.tokens import Role
from lumos.version import __version__

_JSON: Final = "application/json"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_BODY_SECONDS: Final = 30
_KEEP_ALIVE_SECONDS: Final = 15.0
_MAX_ID_DIGITS: Final = 18
_MIN_COMPRESSED_BYTES: Final = 1_000
# Each member copies the rest of the body.
_MAX_GZIP_MEMBERS: Final = 100
_SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class BodyTooLarge(MisuseError):
    """A request body that is larger than the limit."""


class BodyTooSlow(MisuseError):
    """A request body that did not arrive in time."""


class UnsupportedBody(MisuseError):
    """A request body that is not JSON."""


class TooManyRequests(MisuseError):
    """More requests than the limit; `seconds` to wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"Too many requests. Wait {seconds:.1f} s, then try again.")


class TooManyStreams(LumosError):
    """More open streams of events than the limit."""


# The status of an error is that of the first class of which it is an instance.
_STATUSES: Final[tuple[tuple[type[LumosError], int], ...]] = (
    (InvalidArguments, 400),
    (NotAuthenticated, 401),
    (NotAllowed, 403),
    (BodyTooSlow, 408),
    (PreconditionFailed, 412),
    (BodyTooLarge, 413),
    (UnsupportedBody, 415),
    (TooManyRequests, 429),
    (TooManyStreams, 503),
    (ProviderUnavailable, 503),
    (TookTooLong, 504),
    (FeatureDisabled, 404),
    (UnknownDataset, 404),
    (NoMatchingDataset, 404),
    (UnknownName, 404),
    (UnknownJob, 404),
    (AmbiguousName, 409),
    (MisuseError, 422),
    (StoreError, 503),
    (CatalogError, 502),
    (MissingDependency, 500),
    (LumosError, 500),
)


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """The response of `/health` and `/ready`."""

    status: str
    version: str


class IdentityReport(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a request, their role, and the features of the server.

    `disabled` are feature switches that are off.
    """

    name: str
    role: Role
    version: str
    disabled: tuple[str, ...]


class ServerOptions(NamedTuple):
    """The options of `lumos serve`; `open_loopback`: local requests need no token."""

    open_loopback: bool
    max_request_bytes: int
    request_seconds: float
    requests_per_minute: int
    event_streams: int


_OpenLineageBody = dict[str, Any] | list[dict[str, Any]]
EXTRA_ROUTES: Final = (
    ExtraRoute(
        method="GET", url="/health", name="health", role=None, result=HealthReport,
        summary="Whether the server runs.",
    ),
    ExtraRoute(
        method="GET", url="/ready", name="ready", role=None, result=HealthReport,
        summary="Whether the store can be read.", statuses=(503,),
    ),
    ExtraRoute(
        method="GET", url="/openapi.json", name="openapi", role=None, result=dict[str, Any],
        summary="This document.",
    ),
    ExtraRoute(
        method="GET", url="/metrics", name="metrics", role="read", media_type=_METRICS,
        summary="Metrics for Prometheus.",
    ),
    ExtraRoute(
        method="GET", url=f"{PREFIX}/identity", name="identity", role="read", result=IdentityReport,
        summary="Who the sender of the request is, and what they may do.",
    ),
    ExtraRoute(
        method="POST", url=f"{PREFIX}/lineage", name="openlineage", role="write",
        sdk_path="lineage", body=_OpenLineageBody, result=LineageIngestReport,
        summary="Record one OpenLineage event or a list of them, as an OpenLineage client sends "
        "them.",
    ),
    ExtraRoute(
        method="GET", url=f"{PREFIX}/changes/events", name="change_events", role="read",
        media_type="text/event-stream", sdk_path="change_history.latest",
        summary="Changes as server-sent events, as they are recorded.",
        parameters=(
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"},
             "description": "The id of the last event that the client received."},
        ),
    ),
    ExtraRoute(
        method="GET", url=f"{PREFIX}/jobs/events", name="job_events", role="read",
        media_type="text/event-stream",
        summary="The state, progress and log of a job as server-sent events, until it has ended.",
        parameters=(
            {"name": "id", "in": "query", "required": True,
             "schema": {"type": "integer", "minimum": 1}, "description": "The number of the job."},
        ),
    ),
)  # fmt: skip


# In the state of a request that holds a place among the event streams.
_RESERVED: Final = "reserved_stream"
_CONNECTED: Final = ServerSentEventMessage(
    data=None, comment="connected", retry=int(POLL_SECONDS * 1000)
)


class ApiServer:
    """The request handlers of one `Lumos`."""

    def __init__(self, lumos: Lumos, options: ServerOptions) -> None:
        self._lumos = lumos
        self._switches = lumos.settings.switches
        self._options = options
        self._dispatcher = Dispatcher(lumos, seconds=options.request_seconds)
        oidc = lumos.settings.server.oidc
        self._authenticator = Authenticator(
            lumos.tokens,
            oidc=None if oidc is None else OidcVerifier(oidc),
            open_loopback=options.open_loopback,
        )
        self._limiter = RateLimiter(options.requests_per_minute)
        self._metrics = Metrics()
        self._open_streams = 0
        self._feed = ChangeFeed(
            lambda after: self._dispatcher.in_thread(lumos.change_history.latest, after)
        )

    def app(self) -> RequestLog:
        """The application; the outermost layer logs requests, including those to unknown routes."""
        extra = {
            "health": self._health,
            "ready": self._ready,
            "openapi": self._document,
            "metrics": self._metrics_text,
            "identity": self._identity,
            "openlineage": self._openlineage,
            "change_events": self._change_events,
            "job_events": self._job_events,
        }
        handlers = [
            *(_handler(each.url, each.method, partial(self._answer, each)) for each in ROUTES),
            *(_handler(each.url, each.method, extra[each.name]) for each in EXTRA_ROUTES),
            *(_handler(each, "GET", self._page) for each in page.PAGES),
            _handler(f"{page.ASSETS}/{{name:str}}", "GET", self._asset),
        ]
        litestar = Litestar(
            handlers,
            openapi_config=None,
            compression_config=CompressionConfig(
                backend="brotli",
                brotli_gzip_fallback=True,
                minimum_size=_MIN_COMPRESSED_BYTES,
                # Compression would delay events until a block is full.
                exclude=[f"^{PREFIX}/(changes|jobs)/events$"],
            ),
            exception_handlers={HTTPException: self._http_error, Exception: self._crash},
            request_max_body_size=self._options.max_request_bytes,
            lifespan=[self._lifespan],
            # Litestar would log tracebacks with local values.
            logging_config=None,
        )
        return RequestLog(partial(self._run, litestar), self._metrics)

    @asynccontextmanager
    async def _lifespan(self, _app: Litestar) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._dispatcher.close()

    async def _answer(self, route: Route, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            identity = await self._admit(request, route.role)
            self._switches.require_method(route.sdk_path)
            if route.has_body:
                arguments = from_body(route, await self._body(request))
            else:
                arguments = from_query(route, _query(request))
            if route.sdk_method.is_stream:
                lines = await self._dispatcher.stream(route, arguments, identity)
                return Stream(lines, media_type=NDJSON, headers=_SECURITY_HEADERS)
            if route.output is not None:
                exported = await self._dispatcher.in_thread(
                    self._dispatcher.export, route, arguments, identity
                )
                headers = {**_SECURITY_HEADERS, REPORT_HEADER: quote(exported.report)}
                chunks = self._dispatcher.chunks(exported)
                return Stream(chunks, media_type=_media_type(exported.file), headers=headers)
            answer = await self._dispatcher.in_thread(
                self._dispatcher.answer,
                route,
                arguments,
                identity,
                request.headers.get("if-match"),
            )
        except LumosError as problem:
            return self._problem(request, problem)
        headers = dict(_SECURITY_HEADERS)
        if answer.next_query is not None:
            headers["Link"] = f'<{route.url}?{answer.next_query}>; rel="next"'
        if route.method == "GET":
            headers["ETag"] = answer.etag
            if _matches(request.headers.get("if-none-match"), answer.etag):
                return Response(None, status_code=304, headers=headers)
        elif answer.written_etag is not None:
            headers["ETag"] = answer.written_etag
        return Response(answer.body, media_type=_JSON, headers=headers, status_code=200)

    async def _admit(self, request: Request[Any, Any, Any], role: Role) -> Identity:
        """The sender of a request; raises an error if they do not have the role."""
        try:
            identity = await self._identify(request)
        except NotAuthenticated:
            # Limit attempts to guess a token, by address.
            self._check_rate(f"address:{request.client.host if request.client else ''}")
            raise
        request.scope["state"]["actor"] = identity.actor.name
        self._check_rate(identity.key)
        if not includes(identity.role, role):
            raise NotAllowed(
                f"This needs the role {role}, but {identity.actor.name} has the role "
                f"{identity.role}. Create a token with: lumos token create NAME --role {role}"
            )
        return identity

    async def _identify(self, request: Request[Any, Any, Any]) -> Identity:
        """The sender of a request; raises NotAuthenticated."""
        peer = Peer(
            address=request.client.host if request.client else "",
            headers=request.headers,
            request_id=request.scope["state"]["request_id"],
        )
        if "authorization" not in peer.headers:
            # Without a token, the store is not read, so no thread is needed.
            return self._authenticator.identify(peer)
        return await self._dispatcher.in_thread(self._authenticator.identify, peer)

    def _check_rate(self, key: str) -> None:
        if (seconds := self._limiter.wait(key)) is not None:
            raise TooManyRequests(seconds)

    async def _body(self, request: Request[Any, Any, Any]) -> bytes:
        """The body of a request: JSON, decompressed if necessary."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        # Browsers may send other content types to this server from any site without asking first
        # (a CORS preflight request).
        if kind != _JSON:
            raise UnsupportedBody(f"Send the body as JSON, with the header Content-Type: {_JSON}")
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await request.body()
        except TimeoutError:
            raise BodyTooSlow(f"The body did not arrive within {_BODY_SECONDS} s.") from None
        encoding = request.headers.get("content-encoding", "identity").lower()
        if encoding == "gzip":
            return self._decompress(body)
        if encoding != "identity":
            raise UnsupportedBody(f"Content-Encoding '{encoding}' is not supported. Use gzip.")
        return body

    def _decompress(self, body: bytes) -> bytes:
        limit = self._options.max_request_bytes
        members: list[bytes] = []
        left = limit
        while body:
            if len(members) == _MAX_GZIP_MEMBERS:
                raise BodyTooLarge(f"The body has more than {_MAX_GZIP_MEMBERS} gzip members.")
            unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                data = unzip.decompress(body, left + 1)
            except zlib.error as problem:
                raise InvalidArguments(f"The body is not valid gzip: {problem}.") from None
            if len(data) > left:
                raise BodyTooLarge(_too_large(limit))
            if not unzip.eof:
                raise InvalidArguments("The body is not valid gzip: its end is missing.")
            members.append(data)
            left -= len(data)
            body = unzip.unused_data
        return b"".join(members)

    async def _health(self, _request: Request[Any, Any, Any]) -> Response[Any]:
        return _json(HealthReport(status="ok", version=__version__))

    async def _ready(self, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            await self._dispatcher.in_thread(self._lumos.database.check_revision)
        except LumosError as problem:
            return self._problem(request, problem, status=503)
        return _json(HealthReport(status="ready", version=__version__))

    async def _document(self, _request: Request[Any, Any, Any]) -> Response[Any]:
        body = await self._dispatcher.in_thread(_openapi, self._switches.disabled)
        return Response(body, media_type=_JSON, headers=_SECURITY_HEADERS)

    async def _metrics_text(self, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            await self._admit(request, "read")
            self._metrics.set_watch_status(
                await self._dispatcher.in_thread(self._lumos.events.status)
            )
        except LumosError as problem:
            return self._problem(request, problem)
        return Response(self._metrics.text(), media_type=_METRICS, headers=_SECURITY_HEADERS)

    async def _identity(self, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            identity = await self._admit(request, "read")
        except LumosError as problem:
            return self._problem(request, problem)
        return _json(
            IdentityReport(
                name=identity.actor.name,
                role=identity.role,
                version=__version__,
                disabled=self._switches.disabled,
            )
        )

    async def _page(self, request: Request[Any, Any, Any]) -> Response[Any]:
        """The web page. It needs no token: it contains no data, and asks the user for a token."""
        try:
            return _file(page.index())
        except LumosError as problem:
            return self._problem(request, problem)

    async def _asset(self, request: Request[Any, Any, Any]) -> Response[Any]:
        file = page.asset(request.path_params["name"])
        if file is None:
            path = request.scope["path"]
            return self._problem(request, MisuseError(f"There is no file {path}."), status=404)
        return _file(file)

    async def _openlineage(self, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            identity = await self._admit(request, "write")
            self._switches.require("lineage")
            try:
                value = decode_json(await self._body(request))
            except msgspec.MsgspecError as problem:
                raise InvalidArguments(f"The body is not valid: {problem}.") from None
            events = value if isinstance(value, list) else [value]
            if not events or not all(isinstance(each, dict) for each in events):
                raise InvalidArguments(
                    "The body is neither an OpenLineage event nor a list of them."
                )
            report = await self._dispatcher.in_thread(
                self._dispatcher.write, identity, self._lumos.lineage.record_events, *events
            )
        except LumosError as problem:
            return self._problem(request, problem)
        return _json(report)

    async def _change_events(self, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            await self._admit(request, "read")
            self._switches.require("schema_tracking")
            self._reserve_stream(request)
            given = request.headers.get("last-event-id")
            if (given is not None and not given.isascii()) or (given and not given.isdigit()):
                raise InvalidArguments("Last-Event-ID is not the id of an event of this server.")
            latest = self._lumos.change_history.latest
            start = (
                (await self._dispatcher.in_thread(latest, None)).position
                if not given
                else min(int(given[:18]), 2**53)
            )
        except LumosError as problem:
            return self._problem(request, problem)
        return self._event_stream(request, self._follow(start))

    async def _follow(self, start: int) -> AsyncGenerator[ServerSentEventMessage, None]:
        """The changes after a position, with comments that keep idle connections open."""
        yield _CONNECTED
        async for change in self._feed.follow(start, idle_seconds=_KEEP_ALIVE_SECONDS):
            if change is None:
                yield ServerSentEventMessage(data=None, comment="waiting")
                continue
            position, event = change
            yield ServerSentEventMessage(id=str(position), event=event.type, data=event.body)

    async def _job_events(self, request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            await self._admit(request, "read")
            self._reserve_stream(request)
            id = request.query_params.get("id", "")
            if not (id.isascii() and id.isdigit() and len(id) <= _MAX_ID_DIGITS):
                raise InvalidArguments("The parameter 'id' is not the number of a job.")
            job = await self._dispatcher.in_thread(self._lumos.jobs.show, int(id))
        except LumosError as problem:
            return self._problem(request, problem)
        return self._event_stream(request, self._follow_job(job))

    async def _follow_job(self, job: JobReport) -> AsyncGenerator[ServerSentEventMessage, None]:
        """Yield a job, without its result, whenever it has changed, and each new log line."""
        sent: JobReport | None = None
        last_line: JobLogLine | None = None
        idle = 0.0
        yield _CONNECTED
        while True:
            current = msgspec.structs.replace(job, result=None, log=(), lease_until=None)
            # The oldest lines of a long log are dropped, so positions do not identify lines.
            sent_lines = job.log.index(last_line) + 1 if last_line in job.log else 0
            new_lines = job.log[sent_lines:]
            for line in new_lines:
                yield ServerSentEventMessage(event="log", data=to_json(line).decode())
            if current != sent:
                yield ServerSentEventMessage(event="job", data=to_json(current).decode())
            has_news = bool(new_lines) or current != sent
            sent, last_line = current, job.log[-1] if job.log else None
            if job.state in FINISHED_STATES:
                return
            idle = 0.0 if has_news else idle + POLL_SECONDS
            if idle >= _KEEP_ALIVE_SECONDS:
                idle = 0.0
                yield ServerSentEventMessage(data=None, comment="waiting")
            await asyncio.sleep(POLL_SECONDS)
            job = await self._dispatcher.in_thread(self._lumos.jobs.show, job.id)

    def _event_stream(
        self,
        request: Request[Any, Any, Any],
        messages: AsyncGenerator[ServerSentEventMessage, None],
    ) -> ServerSentEvent:
        """A stream that ends soon after the client's token expires or is revoked."""

        async def messages_while_allowed() -> AsyncIterator[ServerSentEventMessage]:
            checked = time.monotonic()
            async with aclosing(messages):
                async for message in messages:
                    if time.monotonic() - checked >= _KEEP_ALIVE_SECONDS:
                        try:
                            await self._identify(request)
                        except (NotAuthenticated, NotAllowed):
                            return
                        except LumosError as problem:
                            LOG.warning(
                                "A token could not be checked; its stream stays open: %s", problem
                            )
                        checked = time.monotonic()
                    yield message

        return ServerSentEvent(messages_while_allowed(), headers={"Cache-Control": "no-cache"})

    def _reserve_stream(self, request: Request[Any, Any, Any]) -> None:
        """Count a stream from before its first await, so that the limit cannot be exceeded."""
        if self._open_streams >= self._options.event_streams:
            raise TooManyStreams("Too many streams of events are open. Try again later.")
        self._open_streams += 1
        self._metrics.streams.inc()
        request.scope["state"][_RESERVED] = True

    async def _run(self, app: Litestar, scope: Any, receive: Any, send: Any) -> None:
        """Run a request and free its stream, also if the stream never begins."""
        try:
            await app(scope, receive, send)
        finally:
            if scope.get("state", {}).pop(_RESERVED, False):
                self._open_streams -= 1
                self._metrics.streams.dec()

    def _problem(
        self, request: Request[Any, Any, Any], error: LumosError, *, status: int | None = None
    ) -> Response[Any]:
        code = status or next(code for type, code in _STATUSES if isinstance(error, type))
        request_id = request.scope["state"]["request_id"]
        problem = problem_of(
            error, status=code, title=HTTPStatus(code).phrase, request_id=request_id
        )
        headers = dict(_SECURITY_HEADERS)
        if code == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Bearer realm="lumos"'
        if isinstance(error, TooManyRequests):
            headers["Retry-After"] = str(int(error.seconds) + 1)
        elif code == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = "1"
        return Response(to_json(problem), status_code=code, media_type=PROBLEM, headers=headers)

    def _http_error(self, request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        """Responses to errors of Litestar: an unknown route or method, a body that is too large."""
        code = error.status_code
        if code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return self._problem(request, BodyTooLarge(_too_large(self._options.max_request_bytes)))
        sentences = {
            404: f"There is no route {request.scope['path']}. See all in /openapi.json",
            405: f"{request.scope['path']} has no method {request.method}. See /openapi.json",
        }
        response = self._problem(
            request, MisuseError(sentences.get(code, error.detail)), status=code
        )
        for name, value in (error.headers or {}).items():
            response.headers[name] = value
        return response

    def _crash(self, request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        """The response to an unexpected error; the traceback is only logged."""
        request_id = request.scope.get("state", {}).get("request_id", "")
        LOG.error(
            "failed",
            extra={"facts": {"request_id": request_id, "error": redact(repr(error))}},
            exc_info=error,
        )
        text = f"Internal error. The server's log has the details, with request id {request_id}."
        return self._problem(request, LumosError(text))


@cache
def _openapi(disabled: tuple[str, ...]) -> bytes:
    """The OpenAPI document. It is built at the first request, since building takes a second."""
    switches = Switches(dict.fromkeys(disabled, False), None)
    routes = tuple(each for each in ROUTES if switches.is_enabled_method(each.sdk_path))
    extra = tuple(
        each
        for each in EXTRA_ROUTES
        if each.sdk_path is None or switches.is_enabled_method(each.sdk_path)
    )
    return to_json(document(extra, routes))


def _handler(url: str, method: str, function: Any) -> HTTPRouteHandler:
    async def handle(request: Request[Any, Any, Any]) -> Response[Any]:
        response: Response[Any] = await function(request)
        return response

    handle.__name__ = f"{method.lower()}_{url.strip('/').replace('/', '_')}"
    return HTTPRouteHandler(url, http_method=HttpMethod(method), status_code=200)(handle)


def _json(value: object) -> Response[Any]:
    return Response(to_json(value), media_type=_JSON, headers=_SECURITY_HEADERS)


def _file(file: page.PageFile) -> Response[Any]:
    return Response(file.body, media_type=file.media_type, headers=file.headers)


def _media_type(file: Path) -> str:
    kinds = {".jsonl": NDJSON, ".json": _JSON, ".zst": "application/zstd"}
    return kinds.get(file.suffix, "application/yaml")


def _query(request: Request[Any, Any, Any]) -> str:
    query: bytes = request.scope["query_string"]
    return query.decode("ascii", "replace")


def _matches(header: str | None, etag: str) -> bool:
    if header is None:
        return False
    etags = {each.strip().removeprefix("W/") for each in header.split(",")}
    return "*" in etags or etag.removeprefix("W/") in etags


def _too_large(limit: int) -> str:
    return (
        f"The body is larger than {limit:,} bytes. Send less, or raise server.max_request_bytes "
        "in lumos.yaml."
    )
