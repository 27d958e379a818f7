"""Iceberg REST catalogs and Nessie as sources, read with the client of pyiceberg."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import msgspec

from lumos.config.secret import redact
from lumos.config.sources import IcebergSourceSettings, NessieSourceSettings
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.iceberg.metadata import parse_metadata
from lumos.formats.tables.iceberg.schema import (
    iceberg_schema,
    identity_columns,
    partition_columns,
)
from lumos.model.dataset import Definition, Location, Owner, Statistics
from lumos.model.discovery import FoundDataset, Problem, SourceMetadata
from lumos.sources.interface import (
    ReadProgress,
    RegisteredPartition,
    RegisteredTable,
    SourceNotUsable,
)
from lumos.sources.metastores.source import (
    MetastoreClient,
    MetastoreEntry,
    SelectedTables,
    UnreadableEntry,
)
from lumos.sources.metastores.tables import qualified
from lumos.sources.relational import content_of, path_of

_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60
_RETRIED: Final = (429, 502, 503, 504)
_MAX_NAMESPACES: Final = 100_000
_PAGE_TOKEN: Final = "pageToken="
# Properties that change with the data, or that only matter to writers.
_VOLATILE_PREFIXES: Final = ("current-snapshot-", "nessie.", "gc.", "write.", "commit.")
_REPORT_INTERVAL: Final = 50


class IcebergSource(SelectedTables):
    kind: ClassVar[str] = "iceberg"
    label = "Iceberg REST catalog"
    _settings: IcebergSourceSettings

    @property
    def address(self) -> str:
        return self._uri.rstrip("/")

    @property
    def _uri(self) -> str:
        """The address of the REST API."""
        return self._settings.uri

    @contextmanager
    def _connect(self) -> Iterator[MetastoreClient]:
        try:
            import pyiceberg.exceptions as errors
            from requests.exceptions import RequestException
        except ModuleNotFoundError:
            raise SourceNotUsable(
                "Reading an Iceberg catalog needs pyiceberg.", "pip install 'lumos[iceberg]'"
            ) from None
        denied = (
            errors.UnauthorizedError,
            errors.ForbiddenError,
            errors.OAuthError,
            errors.AuthorizationExpiredError,
        )
        try:
            yield _IcebergClient(self._catalog(), self.address)
        except denied as problem:
            raise SourceNotUsable(
                f"The catalog at {self.address} rejected the login: {self._text(problem)}.",
                "Check 'token' or 'credential'.",
            ) from None
        except RequestException as problem:
            raise SourceNotUsable(
                f"Cannot read the catalog at {self.address}: {self._text(problem)}.",
                "Check 'uri', the network, and that the server is running.",
            ) from None
        except (errors.RESTError, errors.NoSuchNamespaceError, ValueError) as problem:
            raise SourceNotUsable(
                f"The server at {self.address} did not answer as an Iceberg catalog does: "
                f"{self._text(problem)}.",
                "Check 'uri' and 'warehouse'.",
            ) from None

    def _catalog(self) -> Any:
        settings = self._settings
        properties: dict[str, Any] = {
            "uri": self.address,
            "warehouse": settings.warehouse,
            "token": settings.token.reveal() if settings.token else None,
            "credential": settings.credential.reveal() if settings.credential else None,
            "scope": settings.scope,
            "oauth2-server-uri": settings.oauth2_server_uri,
            "ssl": {"cabundle": settings.ssl_ca_file} if settings.ssl_ca_file else None,
        }
        given = {name: value for name, value in properties.items() if value is not None}
        return _rest_catalog()(self.kind, **given)

    def _text(self, problem: Exception) -> str:
        """The message of an error, without secrets."""
        text = " ".join(str(problem).split())
        for secret in filter(None, (self._settings.token, self._settings.credential)):
            for part in (secret.reveal(), *secret.reveal().split(":")):
                text = text.replace(part, "***") if part else text
        return redact(text)[:300].rstrip(".")


class NessieSource(IcebergSource):
    """The tables of one branch or tag of Nessie, through its Iceberg REST API."""

    kind: ClassVar[str] = "nessie"
    label = "Nessie"
    _settings: NessieSourceSettings

    @property
    def _uri(self) -> str:
        base = self._settings.uri.rstrip("/")
        for end in ("/api/v1", "/api/v2", "/iceberg"):
            base = base.removesuffix(end)
        return f"{base}/iceberg/{self._settings.ref}"


def _rest_catalog() -> Any:
    """pyiceberg's catalog with time limits, page limits and retries, which pyiceberg lacks."""
    from pyiceberg.catalog.rest import RestCatalog
    from requests import RequestException
    from requests.adapters import HTTPAdapter
    from urllib3 import Retry

    # The last response is returned rather than raised, so that pyiceberg reads its message.
    retries = Retry(
        total=4, connect=1, backoff_factor=0.5, status_forcelist=_RETRIED, raise_on_status=False
    )

    class LimitedAdapter(HTTPAdapter):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._pages: set[str] = set()

        def send(self, request: Any, *arguments: Any, **options: Any) -> Any:
            if _PAGE_TOKEN in request.url:
                # pyiceberg would read pages that refer to each other until memory runs out.
                if request.url in self._pages:
                    raise RequestException("it returns the same page of a list again and again")
                self._pages.add(request.url)
            options["timeout"] = options.get("timeout") or (_CONNECT_SECONDS, _READ_SECONDS)
            return super().send(request, *arguments, **options)

    class LimitedCatalog(RestCatalog):
        def _create_session(self) -> Any:
            session = super()._create_session()
            for scheme in ("http://", "https://"):
                session.mount(scheme, LimitedAdapter(max_retries=retries))
            return session

    return LimitedCatalog


class _IcebergClient(MetastoreClient):
    def __init__(self, catalog: Any, address: str) -> None:
        self._catalog = catalog
        self._address = address
        self._namespaces: dict[str, tuple[str, ...]] = {}

    def databases(self) -> list[str]:
        if not self._namespaces:
            pending: list[tuple[str, ...]] = [()]
            while pending and len(self._namespaces) < _MAX_NAMESPACES:
                parent = pending.pop()
                for namespace in self._catalog.list_namespaces(parent):
                    name = ".".join(namespace)
                    # Skip the parent itself, which some catalogs list, to avoid endless loops.
                    if len(namespace) > len(parent) and name not in self._namespaces:
                        self._namespaces[name] = tuple(namespace)
                        pending.append(tuple(namespace))
        return list(self._namespaces)

    def entries(
        self, database: str, is_selected: Callable[[str], bool], report_progress: ReadProgress
    ) -> Iterator[MetastoreEntry | Problem]:
        namespace = self._namespaces[database]
        tables = _answer(self._catalog.list_tables, namespace)
        views = _answer(self._list_views, namespace)
        names = sorted(
            [(name[-1], self._table) for name in tables if is_selected(name[-1])]
            + [(name[-1], self._view) for name in views if is_selected(name[-1])],
            key=lambda each: each[0],
        )
        for number, (name, read) in enumerate(names):
            if number % _REPORT_INTERVAL == 0:
                report_progress(number / len(names))
            try:
                yield _answer(read, (*namespace, name))
            except UnreadableEntry as problem:
                if problem.code != "gone":
                    yield problem.problem(path_of(*namespace, name))

    def partitions(
        self,
        database: str,  # noqa: ARG002
        entry: MetastoreEntry,  # noqa: ARG002
    ) -> Iterator[RegisteredPartition]:
        # Partitions are in the log of the table, which scans of storage read.
        return iter(())

    def _list_views(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        try:
            return list(self._catalog.list_views(namespace))
        except NotImplementedError:
            # The catalog does not support views.
            return []

    def _table(self, identifier: tuple[str, ...]) -> MetastoreEntry:
        metadata = self._catalog.load_table(identifier).metadata
        parsed = parse_metadata(identifier[-1], metadata.model_dump_json().encode())
        spec = parsed.current_spec
        converted = iceberg_schema(parsed.current_schema, identity_columns(spec))
        keys = partition_columns(spec, converted.paths)
        properties = {name: str(text) for name, text in (parsed.properties or {}).items()}
        snapshot = parsed.current_snapshot
        summary = {} if snapshot is None else dict(metadata.current_snapshot().summary or {})
        rows = _number(summary.get("total-records"))
        registered = RegisteredTable(
            path=path_of(*identifier),
            location=parsed.location,
            format="iceberg",
            files=_number(summary.get("total-data-files")),
            bytes=_number(summary.get("total-files-size")),
            rows=rows,
        )
        found = self._found(
            identifier,
            "table",
            converted.schema,
            {
                "location": redact(parsed.location),
                "format": "iceberg",
                **_reported_parameters(properties),
            },
            properties,
            keys=keys,
            identity=parsed.table_uuid,
            rows=rows,
        )
        return MetastoreEntry(found, registered)

    def _view(self, identifier: tuple[str, ...]) -> MetastoreEntry:
        view = self._catalog.load_view(identifier)
        version = view.current_version()
        schemas = {schema.schema_id: schema for schema in view.metadata.schemas}
        document = msgspec.json.decode(schemas[version.schema_id].model_dump_json())
        schema = iceberg_schema(document).schema
        # Several engines may have stored the same view, each in its own dialect.
        query = next((each.root for each in version.representations), None)
        definition = None
        if query is not None:
            own = ".".join(identifier[:-1])
            default = ".".join(version.default_namespace) or own
            has_one_level = len(identifier) == 2 and "." not in default
            sql = qualified(query.sql, query.dialect, default if has_one_level else own, own)
            definition = Definition(sql=sql, dialect=query.dialect)
        properties = {name: str(text) for name, text in (view.metadata.properties or {}).items()}
        found = self._found(
            identifier,
            "view",
            schema,
            _reported_parameters(properties),
            properties,
            identity=view.metadata.view_uuid,
            definition=definition,
        )
        return MetastoreEntry(found)

    def _found(
        self,
        identifier: tuple[str, ...],
        kind: str,
        schema: Any,
        properties: dict[str, str],
        parameters: dict[str, str],
        *,
        keys: tuple[str, ...] = (),
        identity: str | None = None,
        definition: Definition | None = None,
        rows: int | None = None,
    ) -> FoundDataset:
        owner = parameters.get("owner")
        metadata = SourceMetadata(
            description=parameters.get("comment") or None,
            owner=Owner(name=owner) if owner else None,
            definition=definition,
            properties=properties,
        )
        path = path_of(*identifier)
        partitioning = ", ".join(keys) or None
        return FoundDataset(
            path=path,
            name=".".join(identifier),
            format=kind,
            location=Location(
                uri=f"{self._address}/{path}",
                partitioning=partitioning,
                partition_keys=tuple(field.name for field in schema.fields if field.partition),
                identity=identity and f"uuid/{identity}",
            ),
            schema=schema,
            statistics=Statistics(row_count=rows, total_size_exact=False),
            drift=(),
            content=content_of(kind, partitioning, metadata, schema),
            source_metadata=metadata,
        )


def _reported_parameters(properties: dict[str, str]) -> dict[str, str]:
    return {
        f"parameter.{name}": redact(text)
        for name, text in properties.items()
        if name not in ("comment", "owner") and not name.startswith(_VOLATILE_PREFIXES) and text
    }


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _answer(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call; raises UnreadableEntry if only one table or namespace is unreadable."""
    from pydantic import ValidationError
    from pyiceberg import exceptions as errors

    gone = (errors.NoSuchTableError, errors.NoSuchNamespaceError, errors.NoSuchViewError)
    try:
        return call(*arguments)
    except gone as problem:
        raise UnreadableEntry(" ".join(str(problem).split()), "gone") from None
    except errors.ForbiddenError as problem:
        raise UnreadableEntry(_line(problem), "no_permission") from None
    except ValidationError as problem:
        first = problem.errors()[0]
        reason = f"its metadata is invalid: {first['msg']}"
        raise UnreadableEntry(reason[:300], "unreadable") from None
    except (UnreadableFile, errors.ServerError, KeyError, StopIteration) as problem:
        raise UnreadableEntry(_line(problem), "unreadable") from None


def _line(problem: Exception) -> str:
    return redact(" ".join(str(problem).split()))[:300].rstrip(".") or type(problem).__name__
