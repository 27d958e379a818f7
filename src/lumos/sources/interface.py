"""What the engine asks of a source."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from lumos.model.urn import Urn
from lumos.storage import Selection


class Source(ABC):
    """A place to look for datasets, as its section of the configuration describes it."""

    kind: ClassVar[str]

    @abstractmethod
    def __init__(self, settings: Any) -> None:
        """Takes the source's section; reads nothing yet."""


class LakeSource(Source):
    """A source made of files, which the pipeline groups into datasets."""

    @abstractmethod
    def roots(self) -> tuple[Selection, ...]:
        """What to scan; raises LumosError where something is not there."""

    @abstractmethod
    def urn(self, path: str, *, environment: str) -> Urn:
        """The URN of the dataset at a path below one of the roots."""
