"""A Hive metastore as a source, read over Thrift with the bindings of pyiceberg."""

import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import unquote

from lumos.config.sources import HiveSourceSettings as Settings
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
from lumos.sources.relational import path_of

if TYPE_CHECKING:
    from hive_metastore.ThriftHiveMetastore import Client

_log = logging.getLogger(__name__)
_DEFAULT_PORT: Final = "9083"
_CONNECT_SECONDS: Final = 10
_BATCH_TABLES: Final = 200
_BATCH_PARTITIONS: Final = 1_000
_BATCH_COLUMNS: Final = 50_000
# A larger response cannot come from a metastore.
_MAX_TEXT_BYTES: Final = 64 * 1024 * 1024
_MAX_ITEMS: Final = 5_000_000
_GROUP_OWNERS: Final = ("ROLE", "GROUP")
_Answer = TypeVar("_Answer")


class HiveSource(SelectedTables):
    kind: ClassVar[str] = "hive"
    label = "Hive metastore"
    _settings: Settings

    @property
    def address(self) -> str:
        return _with_port(self._settings.uris[0])

    @contextmanager
    def _connect(self) -> Iterator[MetastoreClient]:
        transport_module, protocol_module, bindings = _libraries()
        transport, protocol = self._open(transport_module, protocol_module)
        try:
            yield _HiveClient(bindings.Client(protocol), self.address)
        except transport_module.TTransport.TTransportException as problem:
            raise SourceNotUsable(
                f"The connection to the Hive metastore at {self.address} was lost: "
                f"{_line(problem)}.",
                "Run again; nothing was recorded. 'statement_timeout' limits the time of one call.",
            ) from None
        except (protocol_module.TProtocol.TProtocolException, UnicodeDecodeError) as problem:
            raise SourceNotUsable(
                f"The server at {self.address} is not a Hive metastore: {_line(problem)}.",
                "Check 'uri', and 'ssl' if the server uses TLS.",
            ) from None
        finally:
            transport.close()

    def _open(self, transport_module: Any, protocol_module: Any) -> tuple[Any, Any]:
        """A connection to the first address that responds."""
        problems = []
        for uri in self._settings.uris:
            socket = self._socket(_with_port(uri))
            socket.setTimeout(_CONNECT_SECONDS * 1000)
            transport = transport_module.TTransport.TBufferedTransport(socket, 1 << 16)
            try:
                transport.open()
            except (transport_module.TTransport.TTransportException, OSError) as problem:
                problems.append(f"{_with_port(uri)}: {_line(problem)}")
                continue
            socket.setTimeout(self._settings.statement_timeout * 1000)
            protocol = protocol_module.TBinaryProtocol.TBinaryProtocolAccelerated(
                transport,
                fallback=True,
                string_length_limit=_MAX_TEXT_BYTES,
                container_length_limit=_MAX_ITEMS,
            )
            return transport, protocol
        raise SourceNotUsable(
            f"Cannot connect to the Hive metastore at {'; '.join(problems)}.",
            "Check 'uri', the network, and that the metastore is running.",
        )

    def _socket(self, uri: str) -> Any:
        from thrift.transport import TSocket, TSSLSocket

        host, _, port = uri.removeprefix("thrift://").rpartition(":")
        host = host.strip("[]")
        if not self._settings.ssl:
            return TSocket.TSocket(host, int(port))
        context = ssl.create_default_context(cafile=self._settings.ssl_ca_file)
        return TSSLSocket.TSSLSocket(host, int(port), ssl_context=context, server_hostname=host)


class _HiveClient(MetastoreClient):
    def __init__(self, client: "Client", address: str) -> None:
        self._client = client
        self._address = address

    def databases(self) -> list[str]:
        try:
            return list(_answer(self._client.get_all_databases))
        except UnreadableEntry as problem:
            raise SourceNotUsable(
                f"The databases at {self._address} cannot be listed: {problem.reason}.",
                "Grant the permission to list databases.",
            ) from None

    def entries(
        self, database: str, is_selected: Callable[[str], bool], report_progress: ReadProgress
    ) -> Iterator[MetastoreEntry | Problem]:
        names = sorted(filter(is_selected, _answer(self._client.get_all_tables, database)))
        for start in range(0, len(names), _BATCH_TABLES):
            batch = names[start : start + _BATCH_TABLES]
            report_progress(start / len(names))
            try:
                tables = _answer(self._client.get_table_objects_by_name, database, batch)
            except UnreadableEntry:
                # One of the tables cannot be read; read them one by one.
                yield from self._single_entries(database, batch)
                continue
            yield from (entry_of(_table(each), address=self._address) for each in tables)

    def _single_entries(
        self, database: str, names: Sequence[str]
    ) -> Iterator[MetastoreEntry | Problem]:
        for name in names:
            try:
                table = _answer(self._client.get_table, database, name)
            except UnreadableEntry as problem:
                if problem.code != "gone":
                    yield problem.problem(path_of(database, name))
                continue
            yield entry_of(_table(table), address=self._address)

    def partitions(self, database: str, entry: MetastoreEntry) -> Iterator[RegisteredPartition]:
        path = entry.found.path
        name = unquote(path.rpartition("/")[2])
        # Each partition repeats the columns of its table, which may be thousands.
        size = max(
            1, min(_BATCH_PARTITIONS, _BATCH_COLUMNS // (len(entry.found.schema.fields) + 1))
        )
        try:
            names = _answer(self._client.get_partition_names, database, name, -1)
            for start in range(0, len(names), size):
                batch = names[start : start + size]
                for each in _answer(self._client.get_partitions_by_names, database, name, batch):
                    location = each.sd.location if each.sd else None
                    yield RegisteredPartition(path, tuple(each.values), location or "")
        except UnreadableEntry as problem:
            if problem.code != "gone":
                raise


def _table(table: Any) -> MetastoreTable:
    descriptor = table.sd
    serde = descriptor.serdeInfo if descriptor else None
    parameters = dict(table.parameters or {})
    # For Spark tables, the location may be a placeholder; the serde then has the actual path.
    path = (serde.parameters or {}).get("path") if serde else None
    location = descriptor.location if descriptor else None
    is_spark = "spark.sql.sources.provider" in parameters
    return MetastoreTable(
        database=table.dbName,
        name=table.tableName,
        type=table.tableType or _MANAGED_BY_DEFAULT,
        columns=_columns(descriptor.cols if descriptor else None),
        partition_columns=_columns(table.partitionKeys),
        location=(path if is_spark and path else location) or None,
        format_classes=tuple(
            filter(
                None,
                (
                    descriptor.inputFormat if descriptor else None,
                    serde.serializationLib if serde else None,
                ),
            )
        ),
        owner=_owner(table),
        comment=parameters.get("comment"),
        original_sql=table.viewOriginalText,
        expanded_sql=table.viewExpandedText,
        parameters=parameters,
        identity=_identity(table, parameters),
    )


_MANAGED_BY_DEFAULT: Final = "MANAGED_TABLE"


def _identity(table: Any, parameters: dict[str, str]) -> str | None:
    """The id of the table; before Hive 4, tables only keep the time of their creation."""
    if parameters.get("uuid"):
        return f"uuid/{parameters['uuid']}"
    number = getattr(table, "id", None)
    if number:
        return f"id/{number}"
    return f"created/{table.createTime}" if table.createTime else None


def _owner(table: Any) -> Owner | None:
    if not table.owner:
        return None
    from hive_metastore.ttypes import PrincipalType

    type = PrincipalType._VALUES_TO_NAMES.get(getattr(table, "ownerType", None), "USER")
    return Owner(name=table.owner, kind="group" if type in _GROUP_OWNERS else "user")


def _columns(columns: Any) -> tuple[MetastoreColumn, ...]:
    return tuple(
        MetastoreColumn(each.name or "", each.type or "", each.comment) for each in columns or ()
    )


def _answer(call: Callable[..., _Answer], *arguments: Any) -> _Answer:
    """The result of a call; raises UnreadableEntry if the server rejects the call."""
    from hive_metastore.ttypes import (
        InvalidOperationException,
        MetaException,
        NoSuchObjectException,
        UnknownDBException,
    )
    from thrift.Thrift import TApplicationException

    try:
        return call(*arguments)
    except (NoSuchObjectException, UnknownDBException) as problem:
        raise UnreadableEntry(_line(problem), "gone") from None
    except (MetaException, InvalidOperationException, TApplicationException) as problem:
        text = _line(problem)
        denied = any(word in text.lower() for word in ("permission", "denied", "not authorized"))
        raise UnreadableEntry(text, "no_permission" if denied else "unreadable") from None


def _libraries() -> tuple[Any, Any, Any]:
    try:
        from hive_metastore import ThriftHiveMetastore
        from thrift import protocol, transport
        from thrift.protocol import TBinaryProtocol, TProtocol  # noqa: F401 - submodules
        from thrift.transport import TTransport  # noqa: F401 - a submodule
    except ModuleNotFoundError:
        raise SourceNotUsable(
            "Reading a Hive metastore needs pyiceberg and thrift.", "pip install 'lumos[hive]'"
        ) from None
    # The library logs each failed attempt to connect, although it also raises an exception.
    logging.getLogger("thrift").setLevel(logging.CRITICAL)
    return transport, protocol, ThriftHiveMetastore


def _with_port(uri: str) -> str:
    address = uri.rstrip("/")
    host = address.removeprefix("thrift://")
    has_port = ":" in host.rpartition("]")[2]
    return address if has_port else f"{address}:{_DEFAULT_PORT}"


def _line(problem: Exception) -> str:
    text = getattr(problem, "message", None) or str(problem) or type(problem).__name__
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return " ".join(str(text).split())[:300].rstrip(".")
