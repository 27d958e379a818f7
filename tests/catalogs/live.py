"""Live catalogs on stubs: each folder has one of its own, on one server for the whole session."""

import atexit
import copy
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from lumos.catalogs.atlas.platform import Atlas
from lumos.catalogs.datahub.platform import Datahub
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.config.platforms import AtlasPlatform, DatahubPlatform, OpenmetadataPlatform
from lumos.config.secret import Secret

from .servers import atlas as atlas_stub
from .servers import gms, openmetadata_kinds
from .servers import openmetadata as openmetadata_stub
from .servers.faults import (
    ALL_KINDS,
    RESET_AFTER,
    RESET_BEFORE,
    TIME_OUT_AFTER,
    TOO_MANY,
    UNAVAILABLE,
)
from .servers.gms import Gms
from .servers.http import Answer, Application, Mishap, Request, Server
from .servers.openmetadata import Openmetadata as OpenmetadataStub
from .servers.spec import specification

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
    return Datahub(DatahubPlatform(gms_server=address, token=Secret(gms.TOKEN)))


@cache
def openmetadata_servers() -> Tenants[OpenmetadataStub]:
    return Tenants(lambda: OpenmetadataStub(specification()))


def openmetadata_of(folder: Path) -> OpenmetadataStub:
    """The stub behind the folder's catalog."""
    return openmetadata_servers().of(folder)[1]


def openmetadata(folder: Path) -> Openmetadata:
    address, _ = openmetadata_servers().of(folder)
    token = Secret(openmetadata_stub.BOT)
    return Openmetadata(OpenmetadataPlatform(server=address, auth_token=token))


@cache
def atlas_servers() -> Tenants[atlas_stub.Atlas]:
    return Tenants(atlas_stub.Atlas)


def atlas_of(folder: Path) -> atlas_stub.Atlas:
    """The stub behind the folder's catalog."""
    return atlas_servers().of(folder)[1]


def atlas(folder: Path) -> Atlas:
    address, _ = atlas_servers().of(folder)
    password = Secret(atlas_stub.PASSWORD)
    return Atlas(AtlasPlatform(server=address, user=atlas_stub.USER, password=password))


# Taking out one thing after the other would take too long between examples.
EMPTIED: dict[str, Callable[[Path], None]] = {
    "datahub": lambda folder: gms_of(folder).emptied(),
    "openmetadata": lambda folder: openmetadata_of(folder).empty(),
    "atlas": lambda folder: atlas_of(folder).empty(),
}


class Rig(ABC):
    """What a test must know to put a stub in the place of a live catalog."""

    kind: ClassVar[str]
    variable: ClassVar[str]
    token: ClassVar[str]
    mishaps: ClassVar[Sequence[Mishap]] = ALL_KINDS
    # As many datasets as a test can wait for.
    few: ClassVar[int] = 500

    @abstractmethod
    def made(self) -> Any:
        """A stub that is empty and does not stop to check what it is sent."""

    @abstractmethod
    def settings(self, address: str) -> dict[str, object]:
        """The configuration that leads there, with little time for an answer."""

    @abstractmethod
    def datasets(self, stub: Any) -> int:
        """How many datasets are there, by whatever name."""

    @abstractmethod
    def state(self, stub: Any) -> Any:
        """All that is there, without what differs from one time to another."""

    @abstractmethod
    def saved(self, stub: Any) -> Any:
        """All that is there, for `restore`."""

    @abstractmethod
    def restore(self, stub: Any, saved: Any) -> None: ...

    @abstractmethod
    def writes(self, server: Server) -> int:
        """How often that dataset was written that was written most."""

    @abstractmethod
    def edit(self, stub: Any, name: str, description: str) -> None:
        """Somebody describes a dataset in the catalog's own pages."""


class DatahubRig(Rig):
    kind = "datahub"
    variable = "DATAHUB_GMS_TOKEN"
    token = gms.TOKEN

    def made(self) -> Gms:
        return Gms(validating=False)

    def settings(self, address: str) -> dict[str, object]:
        section = "platform_config.datahub"
        return {f"{section}.gms_server": address, f"{section}.timeout": 2}

    def datasets(self, stub: Any) -> int:
        return len(stub.datasets())

    def state(self, stub: Any) -> Any:
        return stub.state()

    def saved(self, stub: Any) -> Any:
        return stub.saved()

    def restore(self, stub: Any, saved: Any) -> None:
        stub.restore(saved)

    def writes(self, server: Server) -> int:
        return max(server.application.taken.values())  # type: ignore[attr-defined]

    def edit(self, stub: Any, name: str, description: str) -> None:
        [urn] = [urn for urn in stub.datasets() if urn.endswith(f"/{name},PROD)")]
        stub.hold(urn, {"editableDatasetProperties": {"description": description}})


class OpenmetadataRig(Rig):
    kind = "openmetadata"
    variable = "OPENMETADATA_JWT_TOKEN"
    token = openmetadata_stub.BOT
    # There are six calls for each dataset, and each time-out takes its time.
    few = 100
    mishaps = (*(TOO_MANY, UNAVAILABLE, RESET_BEFORE, RESET_AFTER) * 10, TIME_OUT_AFTER)

    def made(self) -> OpenmetadataStub:
        return OpenmetadataStub()

    def settings(self, address: str) -> dict[str, object]:
        section = "platform_config.openmetadata"
        return {f"{section}.server": address, f"{section}.timeout": 1}

    def datasets(self, stub: Any) -> int:
        return len([each for each in stub.entities("container") if "/" in each["name"]])

    def state(self, stub: Any) -> Any:
        return {
            type: {each["fullyQualifiedName"]: _timeless(each) for each in stub.entities(type)}
            for type in openmetadata_kinds.KINDS
        }

    def saved(self, stub: Any) -> Any:
        return _copied(stub.estate)

    def restore(self, stub: Any, saved: Any) -> None:
        stub.estate = _copied(saved)

    def writes(self, server: Server) -> int:
        undone = {request.number for request, mishap in server.met if not mishap.takes_effect}
        written = Counter(
            row["name"]
            for request in server.requests
            if request.path.endswith("/bulk") and request.number not in undone
            for row in request.json
        )
        return max(written.values())

    def edit(self, stub: Any, name: str, description: str) -> None:
        [found] = [
            each for each in stub.estate.listed("container") if each.name.endswith(f"/{name}")
        ]
        found.facts["description"] = description


class AtlasRig(Rig):
    kind = "atlas"
    variable = "ATLAS_TOKEN"
    token = atlas_stub.TOKEN

    def made(self) -> atlas_stub.Atlas:
        return atlas_stub.Atlas()

    def settings(self, address: str) -> dict[str, object]:
        section = "platform_config.atlas"
        return {f"{section}.server": address, f"{section}.timeout": 2}

    def datasets(self, stub: Any) -> int:
        return len([each for each in stub.entities.values() if each.type == "lumos_dataset"])

    def state(self, stub: Any) -> Any:
        return stub.state()

    def saved(self, stub: Any) -> Any:
        return stub.saved()

    def restore(self, stub: Any, saved: Any) -> None:
        stub.restore(saved)

    def writes(self, server: Server) -> int:
        undone = {request.number for request, mishap in server.met if not mishap.takes_effect}
        written = Counter(
            row["attributes"]["qualifiedName"]
            for request in server.requests
            if (request.method, request.path.rpartition("/")[2]) == ("POST", "bulk")
            and request.number not in undone
            for row in request.json["entities"]
            if row["typeName"] == "lumos_dataset"
        )
        return max(written.values())

    def edit(self, stub: Any, name: str, description: str) -> None:
        stub.named(f"/{name}").attributes["userDescription"] = description


def _copied(estate: Any) -> Any:
    return copy.deepcopy(estate, {id(kind): kind for kind in openmetadata_kinds.KINDS.values()})


def _timeless(told: Any) -> Any:
    """What is told of an entity without ids, and without how often it was written."""
    if isinstance(told, str):
        return _ID.sub("an id", told)
    if isinstance(told, dict):
        passing = ("id", "version", "updatedAt")
        return {key: _timeless(value) for key, value in told.items() if key not in passing}
    return [_timeless(each) for each in told] if isinstance(told, list) else told


RIGS: dict[str, type[Rig]] = {rig.kind: rig for rig in (DatahubRig, OpenmetadataRig, AtlasRig)}
