"""Posts the comment of the gate: creates it, or updates the existing one.

The token is only sent to the configured host: links to further pages are requested from that host,
and redirects to another host are errors.
"""

import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import msgspec

from lumos.config.secret import MASK, mask_values, redact, secret_values
from lumos.errors import LumosError, MisuseError
from lumos.gate.comment import CommentStyle, render_comment
from lumos.gate.forges import PAGE_SIZE, Forge, ForgeComment, find_forge, forge_class
from lumos.gate.reports import CommentReport, CommentStatus, GateReport
from lumos.http.client import (
    HttpClient,
    HttpError,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    TimeLimits,
)
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import ONCE, TOO_MANY_REQUESTS, RetryPolicy, RetryState
from lumos.version import __version__

# Long enough for GitHub's secondary rate limits, after which clients must wait a minute.
RETRIES: Final = RetryPolicy(tries=4, seconds=90, first_wait=1, max_wait=10)
_TIME_LIMITS: Final = TimeLimits(connect=5, read=15)
_MAX_PAGES: Final = 100
_MAX_REDIRECTS: Final = 3
_MAX_RESPONSE_BYTES: Final = 128 * 1024 * 1024
_MAX_MESSAGE_LENGTH: Final = 200
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_FIRST_REDIRECT: Final = 300
_FIRST_ERROR: Final = 400


class CommentFailed(LumosError):
    """A comment that a forge did not accept; `status` is the HTTP status, if it responded.

    If the failure is temporary, the comment may have been posted nevertheless.
    """

    def __init__(
        self,
        problem: str,
        *,
        status: int | None = None,
        temporary: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.is_temporary = temporary
        self.retry_after = retry_after
        super().__init__(problem)


def publish_comment(
    report: GateReport,
    environment: Mapping[str, str],
    *,
    kind: str | None = None,
    repository: str | None = None,
    number: int | None = None,
    dry_run: bool = False,
    retries: RetryPolicy = RETRIES,
) -> CommentReport:
    """Create or update the comment on a pull request.

    A failure is reported and not raised: the verdict of the gate must not depend on it.
    """
    forge: Forge | None = None
    secrets = secret_values(environment)
    body, url, problem = "", None, None
    status: CommentStatus = "printed"
    try:
        if dry_run:
            body = mask_values(render_comment(report, _style(environment, kind)), secrets)
        else:
            forge = find_forge(environment, kind=kind, repository=repository, number=number)
            body = mask_values(render_comment(report, forge.style), secrets)
            has_content = bool(report.findings or report.waivers or report.remarks)
            client = ForgeClient(forge, retries=retries)
            status, url = client.publish(body, may_create=has_content)
    except (MisuseError, CommentFailed) as failure:
        status, problem = "failed", mask_values(str(failure), secrets)
    return CommentReport(
        status=status,
        forge=kind if forge is None else forge.kind,
        repository=repository if forge is None else forge.repository,
        pr=number if forge is None else forge.number,
        url=url,
        problem=problem,
        body=body,
    )


def _style(environment: Mapping[str, str], kind: str | None) -> CommentStyle:
    """The style of the forge; if no forge is known, the style of GitHub."""
    try:
        return forge_class(environment, kind).style
    except MisuseError:
        if kind is not None:
            raise
        return CommentStyle()


class ForgeClient:
    """Creates and updates the comment on one pull request."""

    def __init__(
        self,
        forge: Forge,
        *,
        retries: RetryPolicy = RETRIES,
        limits: TimeLimits = _TIME_LIMITS,
    ) -> None:
        self._forge = forge
        self._retries = retries
        self._http = HttpClient(_RateLimits(PooledTransport(limits=limits)))

    def publish(self, text: str, *, may_create: bool = True) -> tuple[CommentStatus, str | None]:
        """Create or update the comment; return the status and its address.

        If a request fails and may have created a comment nevertheless, the comments are read again,
        so that there is never a second comment.
        """
        state = RetryState(self._retries)
        try:
            while True:
                try:
                    return self._publish(text, may_create=may_create)
                except CommentFailed as failure:
                    wait = state.next_wait(failure.retry_after) if failure.is_temporary else None
                    if wait is None:
                        raise
                    time.sleep(wait)
        finally:
            self._http.close()

    def _publish(self, text: str, *, may_create: bool) -> tuple[CommentStatus, str | None]:
        forge = self._forge
        body = msgspec.json.encode(forge.body(text))
        for earlier in self._own_comments():
            if earlier.text.split() == text.split():
                return "unchanged", earlier.url
            try:
                row = self._send(forge.update_method, forge.comment_url(earlier.id), body)
            except CommentFailed as failure:
                # The comment starts with the marker, but belongs to another user.
                if failure.status in (_FORBIDDEN, _NOT_FOUND):
                    continue
                raise
            return "updated", self._parse_comment(row).url or earlier.url
        if not may_create:
            return "skipped", None
        # A new connection: if the server closed an idle one, the transport would repeat the request
        # and might create a second comment.
        self._http.close()
        row = self._send("POST", forge.comments_url(), body, retries=ONCE)
        return "created", self._parse_comment(row).url

    def _own_comments(self) -> list[ForgeComment]:
        """The comments that start with the marker, oldest first."""
        forge = self._forge
        address: str | None = forge.first_page()
        comments: list[ForgeComment] = []
        for _ in range(_MAX_PAGES):
            if address is None:
                return comments
            response = self._send("GET", address)
            page = self._decode(response)
            try:
                for row in forge.rows(page):
                    comment = forge.comment(row)
                    if comment.text.startswith(forge.style.marker) and forge.is_candidate(row):
                        comments.append(comment)
                address = forge.next_page(response, page)
            except (AttributeError, KeyError, TypeError) as problem:
                raise self._unexpected_response(response) from problem
            if address is not None:
                address = _at_same_origin(address, forge.api)
        raise CommentFailed(
            f"No comment on {forge}: it has more than {_MAX_PAGES * PAGE_SIZE:,} comments already."
        )

    def _parse_comment(self, response: HttpResponse) -> ForgeComment:
        try:
            return self._forge.comment(self._decode(response))
        except (AttributeError, KeyError, TypeError) as problem:
            raise self._unexpected_response(response) from problem

    def _decode(self, response: HttpResponse) -> Any:
        try:
            return msgspec.json.decode(response.body)
        except msgspec.DecodeError as problem:
            raise self._unexpected_response(response) from problem

    def _unexpected_response(self, response: HttpResponse) -> CommentFailed:
        forge = self._forge
        return CommentFailed(
            f"No comment on {forge}: {forge.api} did not answer as {forge.title} does. Check "
            f"{forge.api_variable}.",
            status=response.status,
        )

    def _send(
        self, method: str, address: str, body: bytes = b"", *, retries: RetryPolicy | None = None
    ) -> HttpResponse:
        forge = self._forge
        for _ in range(_MAX_REDIRECTS):
            try:
                response = self._http.send(
                    method,
                    address,
                    headers=self._headers,
                    body=body,
                    retries=retries or self._retries,
                    max_bytes=_MAX_RESPONSE_BYTES,
                )
            except HttpError as problem:
                raise CommentFailed(
                    f"No comment on {forge}: {problem}.",
                    temporary=problem.is_temporary and retries is ONCE,
                ) from problem
            if not _FIRST_REDIRECT <= response.status < _FIRST_ERROR:
                break
            target = urljoin(address, response.headers.get("location", ""))
            if _origin(target) != _origin(address):
                raise CommentFailed(
                    f"No comment on {forge}: {forge.title} redirects to another host "
                    f"({_origin(target)}), which does not get the token. Set {forge.api_variable} "
                    "to the right address.",
                    status=response.status,
                )
            # Forges redirect requests for renamed repositories.
            address = target
        if response.status >= _FIRST_REDIRECT:
            raise self._rejected(response, is_last=retries is not ONCE)
        return response

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"lumos/{__version__}",
            **self._forge.headers(),
        }

    def _rejected(self, response: HttpResponse, *, is_last: bool) -> CommentFailed:
        forge, status = self._forge, response.status
        message = _message(response.body).replace(forge.token.reveal(), MASK)
        answer = f"{forge.title} answered {status}{f' ({message})' if message else ''}"
        match status:
            case 401:
                advice = f"The token in {forge.token_key} is not valid. {forge.permission}."
            case 403:
                advice = f"The token in {forge.token_key} may not comment. {forge.permission}."
            case 404:
                advice = (
                    f"There is no such pull request, or the token in {forge.token_key} cannot see "
                    "it. Check --repository and --pr."
                )
            case 429:
                advice = "Its rate limit is reached. Run the job again later."
            case _:
                advice = "Run the job again later." if response.is_temporary else ""
        return CommentFailed(
            f"No comment on {forge}: {answer}. {advice}".rstrip(),
            status=status,
            temporary=response.is_temporary and not is_last,
            retry_after=response.retry_after,
        )


class _RateLimits:
    """A transport that turns GitHub's rate limit responses, which have status 403, into 429."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    def exchange(self, request: HttpRequest) -> HttpResponse:
        response = self._transport.exchange(request)
        headers_of_response = response.headers
        is_exhausted = headers_of_response.get("x-ratelimit-remaining") == "0"
        if response.status != _FORBIDDEN or not (
            is_exhausted or "retry-after" in headers_of_response
        ):
            return response
        reset = headers_of_response.get("x-ratelimit-reset", "")
        if "retry-after" not in headers_of_response and reset.isdecimal():
            wait = max(0, int(reset) - int(time.time()))
            headers_of_response = {**headers_of_response, "retry-after": str(wait)}
        return response._replace(status=TOO_MANY_REQUESTS, headers=headers_of_response)

    def close(self) -> None:
        self._transport.close()


def _message(body: bytes) -> str:
    """The message of an error response in one line, without secrets."""
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    message = answer.get("message") or answer.get("error") if isinstance(answer, dict) else None
    if isinstance(message, dict):
        message = message.get("message")
    if not isinstance(message, str):
        message = "" if message is None else msgspec.json.encode(message).decode()
    return redact(" ".join(message.split()))[:_MAX_MESSAGE_LENGTH].rstrip(".")


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _at_same_origin(address: str, api: str) -> str:
    """The address with the origin of the API, so that the token is only sent there."""
    parts = urlsplit(address)
    return f"{_origin(api)}{parts.path}{f'?{parts.query}' if parts.query else ''}"
