"""The calls to an Atlas server: REST v2 with JSON, pages of searches, and writes in bulk."""

import base64
import ssl
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from lumos.catalogs.atlas import types
from lumos.catalogs.chunks import chunked
from lumos.catalogs.http import (
    Caller,
    Fault,
    lost_fault,
    response_fault,
    shorten,
    unreachable_fault,
)
from lumos.config.platforms import AtlasPlatform
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable, MisuseError
from lumos.http.client import (
    HttpClient,
    HttpError,
    InvalidRequest,
    NotConnected,
    ResponseTooLarge,
    TimeLimits,
)
from lumos.http.httpx_transport import HttpxTransport

KIND: Final = "atlas"
OLDEST: Final = (2, 1)
_BASE: Final = "/api/atlas/"
_CONNECT: Final = 10.0
# Atlas resets a limit above its own one, 10,000 unless configured otherwise, to 100.
_PAGE: Final = 1_000
# Entities take the server tens of milliseconds each.
_MOST_POSTED: Final = 100
_MOST_QUERIED: Final = 200
# Atlas takes 8 KB of address and headers together.
_LONGEST_QUERY: Final = 5_000
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_ERROR: Final = 400
_REDIRECTED: Final = 300


class NotAtlas(CatalogUnavailable):
    """An address where something other than Atlas answers."""

    def __init__(self, platform: str, answer: str) -> None:
        super().__init__(
            f"{platform} does not answer as Atlas does: {answer}. Use the address of the server "
            "itself, such as http://localhost:21000, and check it with 'lumos doctor'.",
            platform=platform,
        )


class _Failed(Exception):
    """A response with an error status."""

    def __init__(self, status: int, text: str, retry_after: str | None) -> None:
        self.status = status
        self.text = text
        self.retry_after = retry_after
        super().__init__(text)


class AtlasServer:
    """One server; the first call connects."""

    def __init__(self, settings: AtlasPlatform) -> None:
        self._settings = settings
        self.caller = Caller.of(KIND, settings, fault_of)

    @property
    def platform(self) -> str:
        return f"{KIND}:{self._settings.address}"

    def close(self) -> None:
        """Close connections, and forget which types exist."""
        for name in ("_http", "types"):
            value = self.__dict__.pop(name, None)
            if isinstance(value, HttpClient):
                value.close()

    def version(self) -> str:
        """The version of the server; raises CatalogTooOld if it is too old."""
        answer = self._call("GET", "admin/version")
        text = str(answer.get("Version", "")) if isinstance(answer, dict) else ""
        numbers = tuple(int(part) for part in text.partition("-")[0].split(".") if part.isdecimal())
        if not numbers:
            raise NotAtlas(self.platform, "it does not report a version")
        if numbers < OLDEST:
            raise CatalogTooOld(self.platform, "labels and purging", needed="Atlas 2.1 or later")
        return text

    def user(self) -> str | None:
        """The name of the user that the server takes us for."""
        answer = self._call("GET", "admin/session")
        return answer.get("userName") if isinstance(answer, dict) else None

    @cached_property
    def types(self) -> dict[str, str]:
        """The categories of all types by name."""
        headers = self._call("GET", "v2/types/typedefs/headers")
        if not isinstance(headers, list):
            raise NotAtlas(self.platform, "its list of types is not a list")
        return {each["name"]: each["category"] for each in headers}

    def define_types(self) -> None:
        """Create the types of Lumos, or upgrade them to the version of this release."""
        missing = types.OWN_TYPES - self.types.keys()
        if missing == types.OWN_TYPES:
            self._define("POST", types.definitions(set(missing)))
            return
        there = self._call("GET", f"v2/types/typedef/name/{types.DATASET}") or {}
        if missing:
            self._define("POST", types.definitions(set(missing)))
        if _numbers(there.get("typeVersion")) < _numbers(types.VERSION):
            self._define("PUT", types.definitions(set(types.OWN_TYPES - missing)))

    def define_classifications(self, names: set[str]) -> None:
        """Create the classifications that do not exist."""
        for chunk in chunked(
            sorted(names - self.types.keys()), most=_MOST_POSTED, most_bytes=1 << 20, size=len
        ):
            self._define("POST", types.classification_definitions(chunk))

    def _define(self, method: str, definitions: Mapping[str, Any]) -> None:
        try:
            self._call(method, "v2/types/typedefs", definitions)
        except CatalogError as problem:
            # After a lost answer, or beside another writer, some of them exist already.
            if problem.status != _CONFLICT:
                raise
            del self.types
            for kind, some in definitions.items():
                for each in some:
                    if each["name"] not in self.types:
                        self._call(method, "v2/types/typedefs", {kind: [each]})
        self.__dict__.pop("types", None)

    def find(
        self, type: str, lookups: Sequence[str], *, attributes: Sequence[str] = ()
    ) -> Iterator[dict[str, Any]]:
        """The headers of entities with these lookup hashes, deleted ones too."""
        for start in range(0, len(lookups), _MOST_QUERIED):
            criteria = [
                {"attributeName": "lookup", "operator": "=", "attributeValue": lookup}
                for lookup in lookups[start : start + _MOST_QUERIED]
            ]
            yield from self._pages(type, {"condition": "OR", "criterion": criteria}, attributes)

    def all(self, type: str, *, attributes: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The headers of all entities of a Lumos type, deleted ones too, however many."""
        last = ""
        while True:
            later = {"attributeName": "lookup", "operator": ">", "attributeValue": last or " "}
            query = {"condition": "AND", "criterion": [later]}
            page = self._page(type, query, ["lookup", *attributes], sortBy="lookup")
            # Several may share one hash: an active entity and its deleted predecessors.
            lookups = [each["attributes"]["lookup"] for each in page]
            full = len(page) >= _PAGE
            end = lookups[-1] if full else None
            yield from (each for each, lookup in zip(page, lookups, strict=True) if lookup != end)
            if end is None:
                return
            yield from self.find(type, [end], attributes=attributes)
            last = end

    def terms(self) -> Iterator[dict[str, Any]]:
        """The headers of all glossary terms."""
        if types.TERM in self.types:
            yield from self._pages(types.TERM, None, (), deleted=False)

    def glossaries(self) -> Iterator[dict[str, Any]]:
        """The headers of all glossaries."""
        yield from self._pages(types.GLOSSARY, None, (), deleted=False)

    def _pages(
        self, type: str, filters: Any, attributes: Sequence[str], *, deleted: bool = True
    ) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            page = self._page(type, filters, attributes, offset=offset, deleted=deleted)
            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return

    def _page(
        self,
        type: str,
        filters: Any,
        attributes: Sequence[str],
        *,
        offset: int = 0,
        deleted: bool = True,
        **more: Any,
    ) -> list[dict[str, Any]]:
        answer = self._call(
            "POST",
            "v2/search/basic",
            {
                "typeName": type,
                "excludeDeletedEntities": not deleted,
                "limit": _PAGE,
                "offset": offset,
                "attributes": list(attributes),
                **({} if filters is None else {"entityFilters": filters}),
                **more,
            },
        )
        if not isinstance(answer, dict):
            raise NotAtlas(self.platform, "its search does not return an object")
        return answer.get("entities") or []

    def count(self, type: str) -> int:
        """The approximate number of entities of a type."""
        query = {"typeName": type, "excludeDeletedEntities": False, "limit": 1}
        return int((self._call("POST", "v2/search/basic", query) or {}).get("approximateCount", 0))

    def entities(
        self, guids: Sequence[str], **options: bool
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Entities, each with all entities that it refers to, by GUID."""
        for chunk in chunked(
            guids, most=_MOST_QUERIED, most_bytes=_LONGEST_QUERY, size=lambda guid: len(guid) + 6
        ):
            answer = self._call("GET", "v2/entity/bulk", query={"guid": chunk, **options})
            if not isinstance(answer, dict):
                raise CatalogError(
                    f"{self.platform} removed entities while they were read. Try again.",
                    platform=self.platform,
                    retryable=True,
                )
            referred = answer.get("referredEntities") or {}
            yield from ((entity, referred) for entity in answer.get("entities") or ())

    def post(self, entities: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Create or update entities; returns the GUIDs of those with temporary ones.

        Each may refer to those before it. More than a hundred are sent in several calls.
        """
        guids: dict[str, str] = {}
        for start in range(0, len(entities), _MOST_POSTED):
            chunk = [_resolved(each, guids) for each in entities[start : start + _MOST_POSTED]]
            answer = self._call("POST", "v2/entity/bulk", {"entities": chunk})
            guids |= (answer or {}).get("guidAssignments") or {}
        return guids

    def set_classifications(self, headers: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the classifications of entities, which are given by GUID."""
        if not headers:
            return
        answer = self._call("POST", "v2/entity/bulk/setClassifications", {"guidHeaderMap": headers})
        failed = [line for line in answer or () if not str(line).endswith("(Done)")]
        if failed:
            raise CatalogError(
                f"{self.platform} did not set all classifications: {shorten(str(failed[0]))}",
                platform=self.platform,
                status=_ERROR,
            )

    def set_labels(self, guid: str, labels: Sequence[str]) -> None:
        self._call("POST", f"v2/entity/guid/{guid}/labels", list(labels))

    def delete(self, guids: Sequence[str]) -> None:
        """Mark entities as deleted, with the columns of datasets."""
        for chunk in chunked(
            guids, most=_MOST_POSTED, most_bytes=_LONGEST_QUERY, size=lambda guid: len(guid) + 6
        ):
            self._call("DELETE", "v2/entity/bulk", query={"guid": chunk})

    def purge(self, guids: Sequence[str]) -> None:
        """Remove deleted entities for good."""
        for start in range(0, len(guids), _MOST_POSTED):
            self._call("PUT", "admin/purge", list(guids[start : start + _MOST_POSTED]))

    def _call(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None
    ) -> Any:
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {
            **self._login,
            "Accept": "application/json",
            # Servers with protection against forged requests want this header, with any value.
            "X-XSRF-HEADER": KIND,
            **({"Content-Type": "application/json"} if content else {}),
        }
        question = f"?{_query_text(query)}" if query else ""
        url = f"{self._settings.address}{_BASE}{path}{question}"

        def attempt() -> Any:
            answer = self._http.send(method, url, headers=lambda: headers, body=content)
            if answer.status == _NOT_FOUND and method == "GET":
                return None
            if answer.status >= _ERROR:
                raise _Failed(
                    answer.status, _message(answer.body), answer.headers.get("retry-after")
                )
            if answer.status >= _REDIRECTED:
                raise NotAtlas(self.platform, "it redirects, perhaps to a login page")
            try:
                return msgspec.json.decode(answer.body) if answer.body else None
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise NotAtlas(self.platform, "its answer is not JSON") from None

        return self.caller.call(f"{method} /{path}", attempt)

    @cached_property
    def _http(self) -> HttpClient:
        settings = self._settings
        return HttpClient(
            HttpxTransport(
                limits=TimeLimits(min(_CONNECT, settings.timeout), settings.timeout),
                connections=settings.parallel + 1,
                tls=self._tls(),
            )
        )

    def _tls(self) -> ssl.SSLContext:
        path = self._settings.ca_file
        try:
            return ssl.create_default_context(cafile=None if path is None else str(path))
        except OSError as problem:
            raise MisuseError(
                f"'{path}' under platform_config.{KIND}.ca_file is not a file of certificates: "
                f"{problem.strerror or problem}."
            ) from None

    @cached_property
    def _login(self) -> Mapping[str, str]:
        settings = self._settings
        if (token := settings.secret()) is not None:
            return {"Authorization": f"Bearer {token.reveal()}"}
        if settings.user is None:
            return {}
        password = "" if settings.password is None else settings.password.reveal()
        login = base64.b64encode(f"{settings.user}:{password}".encode()).decode()
        return {"Authorization": f"Basic {login}"}


def fault_of(problem: Exception) -> Fault | None:
    """What an exception of a call means."""
    match problem:
        case _Failed(status=status, text=text, retry_after=retry_after):
            return response_fault(status, text, retry_after)
        case NotConnected() | InvalidRequest():
            return unreachable_fault(problem.reason)
        case ResponseTooLarge():
            return Fault(shorten(problem.reason))
        case HttpError():
            return lost_fault(problem.reason)
        case _:
            return None


def _resolved(value: Any, guids: Mapping[str, str]) -> Any:
    """An entity with the GUIDs of entities that an earlier call created."""
    if isinstance(value, dict):
        return {
            key: guids.get(each, each) if key == "guid" else _resolved(each, guids)
            for key, each in value.items()
        }
    return [_resolved(each, guids) for each in value] if isinstance(value, list) else value


def _query_text(query: Mapping[str, Any]) -> str:
    words = {
        key: ("true" if value else "false") if isinstance(value, bool) else value
        for key, value in query.items()
    }
    return urlencode(words, doseq=True, quote_via=quote)


def _numbers(version: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version).split(".") if part.isdecimal())


def _message(content: bytes) -> str:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content.decode("utf-8", "replace")
    return str(body.get("errorMessage") or body) if isinstance(body, dict) else str(body)
