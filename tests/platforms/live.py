"""Live catalogs on stubs: each folder has one of its own, on one server for the whole session."""

import atexit
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from lumos.config.platforms import DatahubPlatform
from lumos.config.secret import Secret
from lumos.platforms.datahub.platform import Datahub

from .servers.gms import TOKEN, Gms
from .servers.http import Answer, Application, Request, Server

Stub = TypeVar("Stub", bound=Application)


class Tenants(Generic[Stub]):
    """Many stubs behind one address, told apart by the first part of the path."""

    def __init__(self, make: Callable[[], Stub]) -> None:
        self._make = make
        self._stubs: dict[str, Stub] = {}
        self._names: dict[Path, str] = {}
        self._server = Server(self._answer, recording=False)
        self._server.__enter__()
        atexit.register(self._server.__exit__, None, None, None)

    def of(self, folder: Path) -> tuple[str, Stub]:
        """The address and the stub of a folder."""
        name = self._names.setdefault(folder, f"t{len(self._names)}")
        if name not in self._stubs:
            self._stubs[name] = self._make()
        return f"{self._server.address}/{name}", self._stubs[name]

    def _answer(self, request: Request) -> Answer:
        _, name, rest = request.target.split("/", 2)
        inner = Request(request.number, request.method, f"/{rest}", request.headers, request.body)
        return self._stubs[name](inner)


@cache
def services() -> Tenants[Gms]:
    return Tenants(Gms)


def gms_of(folder: Path) -> Gms:
    """The stub behind the folder's catalog, for a test to look at or to edit as people do."""
    return services().of(folder)[1]


def datahub(folder: Path) -> Datahub:
    address, _ = services().of(folder)
    return Datahub(DatahubPlatform(gms_server=address, token=Secret(TOKEN)))


class Rig:
    """What a test must know to put a stub in the place of a live catalog."""

    kind: ClassVar[str]
    variable: ClassVar[str]
    token: ClassVar[str]
    make: Callable[..., Any]

    def settings(self, address: str) -> dict[str, object]:
        """The configuration that leads there, with little time for an answer."""
        raise NotImplementedError

    def edit(self, stub: Any, path: str, description: str) -> None:
        """Somebody describes a dataset in the catalog's own pages."""
        raise NotImplementedError


class DatahubRig(Rig):
    kind = "datahub"
    variable = "DATAHUB_GMS_TOKEN"
    token = TOKEN
    make = Gms

    def settings(self, address: str) -> dict[str, object]:
        section = "platform_config.datahub"
        return {f"{section}.gms_server": address, f"{section}.timeout": 2}

    def edit(self, stub: Any, path: str, description: str) -> None:
        urn = f"urn:li:dataset:(urn:li:dataPlatform:s3,{path},PROD)"
        assert urn in stub.entities
        stub.hold(urn, {"editableDatasetProperties": {"description": description}})


RIGS: dict[str, type[Rig]] = {"datahub": DatahubRig}
