"""The AWS Glue Data Catalog as a source, read with botocore."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from lumos.config.secret import redact
from lumos.config.sources import GlueSourceSettings as Settings
from lumos.model.dataset import Owner
from lumos.model.discovery import Problem
from lumos.sources.interface import ReadProgress, RegisteredPartition, SourceNotUsable
from lumos.sources.metastores.source import (
    MetastoreClient,
    MetastoreEntry,
    SelectedTables,
    UnreadableEntry,
    entry_of,
)
from lumos.sources.metastores.tables import MetastoreColumn, MetastoreTable
from lumos.storage.errors import NoCredentials
from lumos.storage.s3 import S3Access
from lumos.storage.s3.credentials import S3Credentials

_TIMEOUT_SECONDS: Final = 60
_CONNECT_SECONDS: Final = 10
_PAGE: Final = 100
_PARTITION_PAGE: Final = 1000
_NOT_FOUND: Final = "EntityNotFoundException"
_DENIED: Final = ("AccessDeniedException", "AccessDenied", "UnrecognizedClientException")
_GRANT: Final = (
    "Grant glue:GetDatabases, glue:GetTables and glue:GetPartitions; docs/METASTORES.md has a "
    "policy."
)


class GlueSource(SelectedTables):
    kind: ClassVar[str] = "glue"
    label = "AWS Glue Data Catalog"
    _settings: Settings

    @property
    def address(self) -> str:
        settings = self._settings
        catalog = f"/{settings.catalog_id}" if settings.catalog_id else ""
        return f"glue://{settings.region or _access(settings).resolve().signing_region()}{catalog}"

    @contextmanager
    def _connect(self) -> Iterator[MetastoreClient]:
        try:
            from botocore import exceptions
            from botocore.config import Config
            from botocore.session import Session
        except ModuleNotFoundError:
            raise SourceNotUsable(
                "Reading the Glue Data Catalog needs botocore.", "pip install 'lumos[glue]'"
            ) from None
        settings = self._settings
        access = _access(settings).resolve()
        credentials = S3Credentials(access)
        try:
            keys = credentials.current()
            assert keys is not None, "access is never anonymous"
            client = Session().create_client(
                "glue",
                region_name=access.signing_region(),
                endpoint_url=settings.endpoint_url,
                aws_access_key_id=keys.key_id,
                aws_secret_access_key=keys.secret,
                aws_session_token=keys.token or None,
                config=Config(
                    connect_timeout=_CONNECT_SECONDS,
                    read_timeout=_TIMEOUT_SECONDS,
                    # Throttled calls are repeated with increasing waits.
                    retries={"mode": "standard", "total_max_attempts": 8},
                    user_agent_extra="lumos",
                ),
            )
            yield _GlueClient(client, settings.catalog_id, self.address)
        except NoCredentials as problem:
            raise SourceNotUsable(
                f"No credentials for {self.address}: {problem}.",
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the source a 'profile' "
                "or keys.",
            ) from None
        except exceptions.ClientError as problem:
            code, text = _error(problem)
            raise SourceNotUsable(
                f"{self.address} rejected a call: {credentials.mask_secrets(text)} ({code}).",
                _GRANT if code in _DENIED else "Check 'region', 'catalog_id' and the credentials.",
            ) from None
        except (exceptions.BotoCoreError, ValueError) as problem:
            text = redact(" ".join(str(problem).split()))[:300].rstrip(".")
            raise SourceNotUsable(
                f"{self.address} cannot be read: {credentials.mask_secrets(text)}.",
                "Check 'endpoint_url', 'region' and the network.",
            ) from None


def _access(settings: Settings) -> S3Access:
    """The credentials of a section; those of Glue are found like those of S3."""
    keys = (settings.access_key_id, settings.secret_access_key, settings.session_token)
    key_id, secret, token = (key.reveal() if key else "" for key in keys)
    return S3Access(
        endpoint_url=settings.endpoint_url or "",
        region=settings.region or "",
        access_key_id=key_id,
        secret_access_key=secret,
        session_token=token,
        profile=settings.profile or "",
        role_arn=settings.role_arn or "",
    )


class _GlueClient(MetastoreClient):
    def __init__(self, client: Any, catalog_id: str | None, address: str) -> None:
        self._client = client
        self._catalog = {} if catalog_id is None else {"CatalogId": catalog_id}
        self._address = address

    def databases(self) -> list[str]:
        pages = self._pages("get_databases", page=_PAGE)
        return [each["Name"] for page in pages for each in page.get("DatabaseList", ())]

    def entries(
        self,
        database: str,
        is_selected: Callable[[str], bool],
        report_progress: ReadProgress,  # noqa: ARG002 - Glue does not count its tables
    ) -> Iterator[MetastoreEntry | Problem]:
        for page in self._checked_pages("get_tables", page=_PAGE, DatabaseName=database):
            for table in page.get("TableList", ()):
                if is_selected(table["Name"]):
                    yield entry_of(_table(database, table), address=self._address)

    def partitions(self, database: str, entry: MetastoreEntry) -> Iterator[RegisteredPartition]:
        path = entry.found.path
        name = unquote(path.rpartition("/")[2])
        pages = self._checked_pages(
            "get_partitions",
            page=_PARTITION_PAGE,
            DatabaseName=database,
            TableName=name,
            # Without this, each partition would repeat the columns of its table.
            ExcludeColumnSchema=True,
        )
        try:
            for page in pages:
                for each in page.get("Partitions", ()):
                    location = (each.get("StorageDescriptor") or {}).get("Location") or ""
                    yield RegisteredPartition(path, tuple(each.get("Values", ())), location)
        except UnreadableEntry as problem:
            if problem.code != "gone":
                raise

    def _checked_pages(self, call: str, *, page: int, **arguments: Any) -> Iterator[dict[str, Any]]:
        """The pages of a listing; raises UnreadableEntry if the service rejects it."""
        from botocore.exceptions import ClientError

        try:
            yield from self._pages(call, page=page, **arguments)
        except ClientError as problem:
            code, text = _error(problem)
            if code == _NOT_FOUND:
                raise UnreadableEntry(text, "gone") from None
            if code in _DENIED:
                raise UnreadableEntry(text, "no_permission") from None
            raise

    def _pages(self, call: str, *, page: int, **arguments: Any) -> Iterator[dict[str, Any]]:
        paginator = self._client.get_paginator(call)
        yield from paginator.paginate(
            **self._catalog, **arguments, PaginationConfig={"PageSize": page}
        )


def _table(database: str, table: dict[str, Any]) -> MetastoreTable:
    descriptor = table.get("StorageDescriptor") or {}
    serde = descriptor.get("SerdeInfo") or {}
    parameters = dict(table.get("Parameters") or {})
    owner = table.get("Owner")
    return MetastoreTable(
        database=database,
        name=table["Name"],
        type=table.get("TableType") or "EXTERNAL_TABLE",
        columns=_columns(descriptor.get("Columns")),
        partition_columns=_columns(table.get("PartitionKeys")),
        location=descriptor.get("Location") or None,
        format_classes=tuple(
            filter(None, (descriptor.get("InputFormat"), serde.get("SerializationLibrary")))
        ),
        owner=Owner(name=owner) if owner else None,
        comment=table.get("Description") or parameters.get("comment"),
        original_sql=table.get("ViewOriginalText"),
        expanded_sql=table.get("ViewExpandedText"),
        parameters=parameters,
    )


def _columns(columns: Sequence[dict[str, Any]] | None) -> tuple[MetastoreColumn, ...]:
    return tuple(
        MetastoreColumn(each["Name"], each.get("Type") or "", each.get("Comment"))
        for each in columns or ()
    )


def _error(problem: Any) -> tuple[str, str]:
    """The code and the message of a rejected call."""
    error = problem.response.get("Error", {})
    text = " ".join(str(error.get("Message") or "rejected").split())[:300].rstrip(".")
    return str(error.get("Code", "")), redact(text)
