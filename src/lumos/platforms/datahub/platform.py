"""The catalog: a DataHub server."""

from importlib.util import find_spec
from typing import Any, ClassVar, Self

from lumos.config.platforms import DatahubPlatform
from lumos.errors import MissingDependency
from lumos.model.dataset import Dataset
from lumos.platforms.interface import HasAddress, Platform


class Datahub(Platform, HasAddress):
    """A DataHub server."""

    kind: ClassVar[str] = "datahub"

    def __init__(self, settings: Any) -> None:
        if find_spec("datahub") is None:
            raise MissingDependency("The platform 'datahub'", "acryl-datahub", "datahub")
        self._settings: DatahubPlatform = settings or DatahubPlatform()

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        settings = DatahubPlatform() if configured is None else configured
        return cls(settings.at(address))

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._settings.address}"

    def emit(self, dataset: Dataset) -> None:
        raise NotImplementedError
