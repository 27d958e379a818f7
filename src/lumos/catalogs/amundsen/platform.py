"""The catalog: an Amundsen server, with its metadata service and its Neo4j."""

import ssl
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from lumos.catalogs.amundsen.catalog import GraphCatalog
from lumos.catalogs.amundsen.graph import KIND
from lumos.catalogs.cleanup import CleansUp
from lumos.catalogs.interface import Connects
from lumos.config.platforms import AmundsenPlatform, normalize_address
from lumos.errors import (
    CatalogUnavailable,
    CatalogUnreachable,
    MissingDependency,
    MisuseError,
)
from lumos.http.client import HttpClient, HttpError, TimeLimits
from lumos.http.httpx_transport import HttpxTransport

if TYPE_CHECKING:
    from lumos.catalogs.amundsen.neo4j_graph import Neo4jGraph

_SECTION: Final = f"platform_config.{KIND}"
_SCHEMES: Final = ("bolt://", "bolt+s://", "neo4j://", "neo4j+s://")
_OK: Final = 200


class Amundsen(GraphCatalog, Connects, CleansUp):
    """An Amundsen server; the first call connects to Neo4j."""

    kind: ClassVar[str] = KIND

    def __init__(self, settings: Any) -> None:
        for library in ("neo4j", "httpx"):
            if find_spec(library) is None:
                raise MissingDependency(f"The platform '{KIND}'", library, KIND)
        if not isinstance(settings, AmundsenPlatform):
            raise MisuseError(
                f"The platform '{KIND}' needs 'server' and 'neo4j_uri' under {_SECTION}."
            )
        if settings.neo4j_uri is None:
            raise MisuseError(
                f"Amundsen's metadata service cannot create tables: set {_SECTION}.neo4j_uri to "
                "its Neo4j, as in neo4j+s://graph.example.com:7687. For Amundsen on a SQL "
                "database, publish the CSV files of the platform 'amundsen-file' instead."
            )
        if not settings.neo4j_uri.reveal().startswith(_SCHEMES):
            raise MisuseError(
                f"{_SECTION}.neo4j_uri must start with {', '.join(_SCHEMES)}. For a "
                f"certificate from a private CA, set {_SECTION}.ca_file instead of a +ssc scheme."
            )
        self._settings = settings

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        if configured is None or normalize_address(configured.server) != normalize_address(address):
            raise MisuseError(
                f"'{address}' is not the server under {_SECTION}, so its Neo4j is unknown. Set "
                "'server' and 'neo4j_uri' there."
            )
        return cls(configured)

    @property
    def name(self) -> str:
        return f"{self.kind}:{normalize_address(self._settings.server)}"

    def check(self) -> str:
        server, token = normalize_address(self._settings.server), self._settings.auth_token
        login = {} if token is None else {"Authorization": f"Bearer {token.reveal().strip()}"}
        ca_file = self._settings.ca_file
        transport = HttpxTransport(
            limits=TimeLimits(self._settings.timeout, self._settings.timeout),
            connections=1,
            tls=ssl.create_default_context(cafile=None if ca_file is None else str(ca_file)),
        )
        try:
            answer = HttpClient(transport).send(
                "GET", f"{server}/healthcheck", headers=lambda: login
            )
        except HttpError as problem:
            raise CatalogUnreachable(
                self.name, server, problem.reason, ca_file=f"{_SECTION}.ca_file"
            ) from problem
        finally:
            transport.close()
        if answer.status != _OK:
            raise CatalogUnavailable(
                f"The metadata service at {server} answered {answer.status} to /healthcheck. Check "
                f"{_SECTION}.server, {_SECTION}.auth_token and that the service reaches its Neo4j.",
                platform=self.name, status=answer.status,
            )  # fmt: skip
        user = self._settings.neo4j_user or "neo4j"
        version = self._graph.version()
        return f"Amundsen at {server} on Neo4j {version} at {self._settings.neo4j_uri}, as {user}"

    def close(self) -> None:
        if "_graph" in self.__dict__:
            self._graph.close()
            del self.__dict__["_graph"]

    def clean_up(self) -> None:
        self._graph.clean_up()

    @cached_property
    def _graph(self) -> "Neo4jGraph":
        # Imported late: the library is only needed when the server is used.
        from lumos.catalogs.amundsen.neo4j_graph import Neo4jGraph

        return Neo4jGraph(self._settings, platform=self.name)
