"""Catalogs that Lumos keeps true. `local`, the default, is the store itself."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from lumos.model.dataset import Dataset


class Platform(ABC):
    """A catalog; every write may be repeated without harm."""

    kind: ClassVar[str]

    @abstractmethod
    def __init__(self, settings: Any) -> None:
        """Takes the catalog's section of `platform_config`; connects to nothing yet."""

    @abstractmethod
    def emit(self, dataset: Dataset) -> None:
        """Creates or updates a dataset; raises LumosError where the catalog refuses."""
