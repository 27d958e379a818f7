"""DataHub's own package, which is large and is imported only where something is asked of it."""

import logging
import os
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from lumos.config.platforms import DatahubPlatform
from lumos.errors import MissingDependency

_CONNECTING = 10.0


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
    from functools import partial

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
