"""The catalog: an OpenMetadata server."""

from importlib.util import find_spec
from typing import Any, ClassVar, Self

from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import MissingDependency, MisuseError
from lumos.model.dataset import Dataset
from lumos.platforms.interface import HasAddress, Platform


class Openmetadata(Platform, HasAddress):
    """An OpenMetadata server."""

    kind: ClassVar[str] = "openmetadata"

    def __init__(self, settings: Any) -> None:
        if find_spec("httpx") is None:
            raise MissingDependency("The platform 'openmetadata'", "httpx", "openmetadata")
        if settings is None:
            raise MisuseError(
                "The platform 'openmetadata' needs the address of its server, as 'server' under "
                "platform_config.openmetadata, or as in openmetadata:https://catalog.example.com."
            )
        self._settings: OpenmetadataPlatform = settings

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        settings = OpenmetadataPlatform(server=address) if configured is None else configured
        return cls(settings.at(address))

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._settings.address}"

    def emit(self, dataset: Dataset) -> None:
        raise NotImplementedError
