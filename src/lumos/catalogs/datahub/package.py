"""DataHub's own package, which is large and is imported only where something is asked of it."""

import logging
import os
from collections.abc import Iterable
from functools import cache, partial
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, NamedTuple

from lumos.config.platforms import DatahubPlatform
from lumos.errors import MissingDependency

_CONNECTING: Final = 10.0
_JSON: Final = "application/json"
_PATCH: Final = "application/json-patch+json"


class MetadataProposal(NamedTuple):
    """A change of one aspect: what it is from now on, or a patch of what it is."""

    type: str
    urn: str
    aspect: str
    body: bytes
    patch: bool = False


def check_installed() -> None:
    """Fails where the package is not there, and imports nothing."""
    if find_spec("datahub") is None:
        raise MissingDependency("The platform 'datahub'", "acryl-datahub", "datahub")


@cache
def classes() -> ModuleType:
    """The classes of DataHub's model."""
    _prepare()
    import datahub.metadata.schema_classes as found

    return found


@cache
def _ready() -> type[Any]:
    """A proposal whose aspect is JSON already, so that little is left to turn into it."""
    base: Any = classes().MetadataChangeProposalClass

    class Ready(base):  # type: ignore[misc]
        def to_obj(self, tuples: bool = False) -> dict[str, Any]:
            if tuples:
                plain: dict[str, Any] = super().to_obj(tuples)
                return plain
            return {
                "entityType": self.entityType,
                "entityUrn": self.entityUrn,
                "changeType": self.changeType,
                "aspectName": self.aspectName,
                "aspect": {"value": self.aspect.value, "contentType": self.aspect.contentType},
                "systemMetadata": _plain(self.systemMetadata),
            }

    return Ready


def proposals_of(changes: Iterable[MetadataProposal]) -> list[Any]:
    """Changes as the package's own proposals."""
    ready, model = _ready(), classes()
    metadata = model.SystemMetadataClass()
    return [
        ready(
            entityType=change.type,
            entityUrn=change.urn,
            aspectName=change.aspect,
            changeType="PATCH" if change.patch else "UPSERT",
            aspect=model.GenericAspectClass(
                value=change.body, contentType=_PATCH if change.patch else _JSON
            ),
            systemMetadata=metadata,
        )
        for change in changes
    ]


def graph_of(settings: DatahubPlatform) -> Any:
    """DataHub's graph client for a server; nothing is asked of the server yet."""
    _prepare()
    from datahub.ingestion.graph.client import DataHubGraph
    from datahub.ingestion.graph.config import DatahubClientConfig

    graph = DataHubGraph(
        DatahubClientConfig(
            server=settings.address,
            timeout_sec=settings.timeout,
            # Lumos itself tries again: it knows what is already there, and when to stop.
            retry_max_times=0,
            pool_maxsize=settings.parallel + 2,
            ca_certificate_path=None if settings.ca_file is None else str(settings.ca_file),
            # The other form changes the order of patches, and takes deletions for too much.
            openapi_ingestion=False,
        )
    )
    _open(graph.session, settings)
    return graph


def _plain(metadata: Any) -> dict[str, Any]:
    return {
        "lastObserved": metadata.lastObserved,
        "runId": metadata.runId,
        "lastRunId": metadata.lastRunId,
        "properties": metadata.properties,
    }


def _prepare() -> None:
    check_installed()
    # Honoured only if it is set before the first import.
    os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")
    log = logging.getLogger("datahub")
    if log.level < logging.WARNING:
        # At lower levels it writes whole bodies.
        log.setLevel(logging.WARNING)


def _open(session: Any, settings: DatahubPlatform) -> None:
    """Lets a session carry the token that was asked for, and no other, and not wait for ever."""
    from requests import PreparedRequest
    from requests.auth import AuthBase

    secret = settings.secret()

    class Bearer(AuthBase):
        # Without an object here, requests would take whatever ~/.netrc has for the host.
        def __call__(self, request: PreparedRequest) -> PreparedRequest:
            request.headers.pop("Authorization", None)
            if secret is not None:
                request.headers["Authorization"] = f"Bearer {secret.reveal()}"
            return request

    session.auth = Bearer()
    timeout = (min(_CONNECTING, settings.timeout), settings.timeout)
    session.request = partial(type(session).request, session, timeout=timeout)
