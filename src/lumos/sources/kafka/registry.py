"""Reads subjects, versions and compatibility modes of a schema registry.

The API is that of Confluent's registry; Apicurio, Karapace and Redpanda have it too.
"""

import base64
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from lumos.config.secret import MASK, redact
from lumos.config.sources import KafkaSourceSettings
from lumos.errors import LumosError
from lumos.http.client import HttpClient, HttpError, HttpResponse, TimeLimits
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import ONCE, RetryPolicy
from lumos.sources.interface import SourceNotUsable

T = TypeVar("T")
R = TypeVar("R")

_PARALLEL: Final = 8
_MAX_WAITING: Final = 100
_NOT_ALLOWED: Final = (401, 403)
_NOT_FOUND: Final = 404
_OK: Final = 200
_MAX_LIST_BYTES: Final = 64 * 1024 * 1024
_MAX_SCHEMA_BYTES: Final = 16 * 1024 * 1024
_MAX_MESSAGE: Final = 300
_RETRIES: Final = RetryPolicy(tries=4, seconds=30, first_wait=0.2, max_wait=2)
# Only the newest versions of a subject are read.
MAX_VERSIONS: Final = 1_000
# Schemas that one schema refers to, directly or not.
_MAX_REFERENCES: Final = 200
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class SchemaReference(msgspec.Struct, frozen=True):
    """A schema that another one refers to by `name`."""

    name: str
    subject: str
    version: int


class RegisteredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a subject; `at` is known only to some registries."""

    subject: str
    version: int
    id: int
    type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    at: datetime | None = None


class ResolvedReferences(NamedTuple):
    """The schemas that a schema refers to, innermost first, and problems with references."""

    schemas: tuple[tuple[str, RegisteredSchema], ...] = ()
    missing: tuple[str, ...] = ()
    is_cyclic: bool = False


class SubjectNotReadable(LumosError):
    """A subject or schema that the registry does not return; `code` is that of the problem."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class _VersionResponse(msgspec.Struct, kw_only=True, rename="camel"):
    id: int
    schema: str
    # Registries omit the default.
    schema_type: str | None = None
    references: list[SchemaReference] | None = None
    ts: int | None = None


class _ListedResponse(_VersionResponse, kw_only=True):
    subject: str
    version: int


class _ConfigResponse(msgspec.Struct, kw_only=True, rename="camel"):
    compatibility_level: str | None = None
    compatibility: str | None = None


class _SubjectVersion(msgspec.Struct):
    subject: str
    version: int


class SchemaRegistry:
    """Reads one registry; used by many threads."""

    def __init__(self, settings: KafkaSourceSettings) -> None:
        assert settings.schema_registry_url is not None
        self.address = settings.schema_registry_url.rstrip("/")
        self._settings = settings
        # True until a response shows that the registry does not support `GET /schemas`.
        self._lists_schemas = True
        self._referenced_schemas: dict[tuple[str, int], RegisteredSchema | None] = {}

    @cached_property
    def _client(self) -> HttpClient:
        limits = TimeLimits(connect=5.0, read=float(self._settings.request_timeout))
        ca_file = self._settings.schema_registry_ca_file
        if ca_file is not None:
            try:
                ssl.create_default_context(cafile=ca_file)
            except OSError as problem:
                raise SourceNotUsable(
                    f"The file '{ca_file}' cannot be used: {problem.strerror or problem}.",
                    "Check 'schema_registry_ca_file'; it contains certificates in PEM format.",
                ) from None
        transport = PooledTransport(limits=limits, ca_file=ca_file)
        return HttpClient(transport, translate=self._unreachable)

    def close(self) -> None:
        """Close idle connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def subjects(self) -> list[str]:
        """All subjects, each once."""
        response = self._get("/subjects", max_bytes=_MAX_LIST_BYTES)
        if response.status in _NOT_ALLOWED:
            raise SourceNotUsable(
                f"The schema registry at {self.address} rejected the login "
                f"(status {response.status}).",
                "Check schema_registry_user and schema_registry_password, or "
                "schema_registry_token.",
            )
        if response.status != _OK:
            raise SourceNotUsable(
                f"{self.address} does not list subjects (status {response.status}"
                f"{self._message(response)}).",
                "Check schema_registry_url; that of Apicurio ends with /apis/ccompat/v7.",
            )
        return sorted(set(self._decode(response, list[str], "subjects")))

    def versions(self, subject: str) -> list[int]:
        """The versions of a subject in ascending order, each once; none if it was deleted."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        found = self._find(path, list[int], f"the versions of '{subject}'", _MAX_LIST_BYTES)
        return sorted(set(found or ()))[-MAX_VERSIONS:]

    def schema(self, subject: str, version: int) -> RegisteredSchema | None:
        """One version of a subject, or None if it was deleted."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        what = f"version {version} of '{subject}'"
        found = self._find(path, _VersionResponse, what, _MAX_SCHEMA_BYTES)
        return None if found is None else _to_registered_schema(subject, version, found)

    def history(self, subject: str) -> list[RegisteredSchema]:
        """All versions of a subject in ascending order, read with one request.

        Empty if the subject was deleted or cannot be read, or if the registry has no such request;
        `versions` and `schema` then raise the error, if any.
        """
        if not self._lists_schemas:
            return []
        path = f"/schemas?subjectPrefix={quote(subject, safe='')}"
        try:
            response = self._get(path, max_bytes=_MAX_LIST_BYTES, retries=ONCE)
            what = f"the schemas of '{subject}'"
            listed = self._decode(response, list[_ListedResponse], what)
        except (SourceNotUsable, SubjectNotReadable):
            # If the registry cannot be reached, the next request raises the error.
            self._lists_schemas = False
            return []
        # Subjects that only begin with the name are skipped. If other subjects are listed, the
        # registry ignores the prefix and would return all subjects for each request.
        if response.status != _OK or any(not each.subject.startswith(subject) for each in listed):
            self._lists_schemas = False
            return []
        found = {each.version: each for each in listed if each.subject == subject}
        return [
            _to_registered_schema(subject, version, found[version])
            for version in sorted(found)[-MAX_VERSIONS:]
        ]

    def compatibility(self, subject: str) -> str | None:
        """The compatibility mode of a subject, or that of the registry."""
        path = f"/config/{quote(subject, safe='')}"
        what = f"the compatibility of '{subject}'"
        found = self._find(f"{path}?defaultToGlobal=true", _ConfigResponse, what, _MAX_SCHEMA_BYTES)
        if found is None:
            return self._global_compatibility
        return found.compatibility_level or found.compatibility

    @cached_property
    def _global_compatibility(self) -> str | None:
        found = self._find("/config", _ConfigResponse, "the compatibility", _MAX_SCHEMA_BYTES)
        return None if found is None else found.compatibility_level or found.compatibility

    def subjects_of(self, schema_id: int) -> list[str]:
        """The subjects that have a schema with this id."""
        path = f"/schemas/ids/{schema_id}/versions"
        what = f"the subjects of schema {schema_id}"
        found = self._find(path, list[_SubjectVersion], what, _MAX_SCHEMA_BYTES)
        return sorted({each.subject for each in found or ()})

    def resolve(self, schema: RegisteredSchema) -> ResolvedReferences:
        """All schemas that a schema refers to; each is read once, so cycles end."""
        found: dict[str, RegisteredSchema] = {}
        missing: list[str] = []
        is_cyclic = False

        def visit(
            current: RegisteredSchema, path: tuple[tuple[str, int], ...]
        ) -> Iterator[tuple[tuple[tuple[str, int], ...], str, RegisteredSchema]]:
            nonlocal is_cyclic
            for reference in current.references:
                target = (reference.subject, reference.version)
                if target in path:
                    is_cyclic = True
                    continue
                if reference.name in found or reference.name in missing:
                    continue
                referenced = self._load_reference(reference)
                if referenced is None:
                    missing.append(reference.name)
                    continue
                found[reference.name] = referenced
                if len(found) > _MAX_REFERENCES:
                    raise SubjectNotReadable(
                        "too_many_references",
                        f"'{schema.subject}' refers to more than {_MAX_REFERENCES} schemas",
                    )
                yield (*path, target), reference.name, referenced

        # Without recursion, since a chain of references may be long.
        order: list[str] = []
        waiting = [visit(schema, ((schema.subject, schema.version),))]
        names: list[str] = []
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
                if names:
                    order.append(names.pop())
            else:
                path, name, referenced = step
                names.append(name)
                waiting.append(visit(referenced, path))
        return ResolvedReferences(
            tuple((name, found[name]) for name in order), tuple(missing), is_cyclic
        )

    def _load_reference(self, reference: SchemaReference) -> RegisteredSchema | None:
        if reference.version < 1:
            # -1 is the latest version, which no registry stores in a reference.
            return None
        # Cached, because many schemas often refer to the same ones.
        key = (reference.subject, reference.version)
        if key not in self._referenced_schemas:
            self._referenced_schemas[key] = self.schema(*key)
        return self._referenced_schemas[key]

    def each(self, items: Iterable[T], work: Callable[[T], R]) -> Iterator[R]:
        """Run `work` for all items in parallel; results have the order of the items.

        At most `_MAX_WAITING` items are started ahead of the caller.
        """
        pool = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="lumos-registry")
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                if len(waiting) == _MAX_WAITING:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(work, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _find(self, path: str, type: type[T], what: str, max_bytes: int) -> T | None:
        """The decoded response; None for status 404; raises SubjectNotReadable for other errors."""
        response = self._get(path, max_bytes=max_bytes)
        if response.status == _OK:
            return self._decode(response, type, what)
        if response.status == _NOT_FOUND:
            return None
        if response.status in _NOT_ALLOWED:
            reason = f"the schema registry does not allow to read {what}"
            raise SubjectNotReadable("not_allowed", reason)
        raise SubjectNotReadable(
            "registry_error",
            f"the schema registry does not return {what} (status {response.status}"
            f"{self._message(response)})",
        )

    def _get(self, path: str, *, max_bytes: int, retries: RetryPolicy = _RETRIES) -> HttpResponse:
        return self._client.send(
            "GET",
            f"{self.address}{path}",
            headers=lambda: self._headers,
            retries=retries,
            max_bytes=max_bytes,
        )

    @cached_property
    def _headers(self) -> Mapping[str, str]:
        settings = self._settings
        headers = {"Accept": _ACCEPT, "User-Agent": "lumos"}
        if settings.schema_registry_token is not None:
            headers["Authorization"] = f"Bearer {settings.schema_registry_token.reveal()}"
        elif settings.schema_registry_user is not None:
            password = settings.schema_registry_password
            login = f"{settings.schema_registry_user}:{password.reveal() if password else ''}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        return headers

    def _decode(self, response: HttpResponse, type: type[T], what: str) -> T:
        try:
            return msgspec.json.decode(response.body, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            reason = f"the schema registry returned an invalid response for {what}"
            raise SubjectNotReadable("registry_error", reason) from None

    def _message(self, response: HttpResponse) -> str:
        try:
            message: Any = msgspec.json.decode(response.body)["message"]
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, RecursionError):
            return ""
        text = " ".join(str(message).split())[:_MAX_MESSAGE]
        password = self._settings.schema_registry_password
        if password is not None and password.reveal():
            text = text.replace(password.reveal(), MASK)
        return f": {redact(text)}" if text else ""

    def _unreachable(self, problem: HttpError) -> SourceNotUsable:
        step = "Check schema_registry_url, the network, and that the registry is running."
        if "certificate" in problem.reason.lower():
            step = "Set schema_registry_ca_file to the CA certificate of the registry."
        return SourceNotUsable(
            f"The schema registry at {self.address} {problem.problem}: {problem.reason}.", step
        )


def _to_registered_schema(
    subject: str, version: int, response: _VersionResponse
) -> RegisteredSchema:
    at = None
    if response.ts is not None:
        try:
            at = datetime.fromtimestamp(response.ts / 1000, UTC)
        except (OverflowError, OSError, ValueError):
            at = None
    return RegisteredSchema(
        subject=subject,
        version=version,
        id=response.id,
        type=(response.schema_type or "AVRO").upper(),
        text=response.schema,
        references=tuple(response.references or ()),
        at=at,
    )
