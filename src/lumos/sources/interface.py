"""What the engine asks of a source."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

from lumos.config.sources import DatasetHint
from lumos.errors import MisuseError
from lumos.model.discovery import Discovery
from lumos.model.urn import Urn
from lumos.storage import Hint, Selection

# Is told which share of the work is done.
Watch: TypeAlias = Callable[[float], None]


def hints_of(datasets: Iterable[DatasetHint]) -> tuple[Hint, ...]:
    """What the configuration says of files, as it travels to executors."""
    return tuple(Hint(each.path, each.name, each.apart) for each in datasets)


class SourceNotUsable(MisuseError):
    """A source that cannot be scanned as things are, and what to do about it."""

    def __init__(self, found: str, next_step: str) -> None:
        self.found = found
        self.next_step = next_step
        super().__init__(f"{found} {next_step}".strip())


class Source(ABC):
    """A place to look for datasets, as its section of the configuration describes it."""

    kind: ClassVar[str]
    # Keeps two accounts or endpoints of one kind apart.
    instance: str = ""

    @abstractmethod
    def __init__(self, settings: Any) -> None:
        """Takes the source's section; reads nothing yet."""

    @property
    def identity(self) -> str:
        """The kind and, where there is one, the instance."""
        return f"{self.kind}@{self.instance}" if self.instance else self.kind

    @abstractmethod
    def urn(self, path: str, *, environment: str) -> Urn:
        """The URN of the dataset at a path that this source found."""


class TableSource(Source):
    """A source that tells of its datasets by itself, such as a database."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it looks, in words for people and without what lets one in."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """What of its instance it speaks for, whatever address that has: a database's name."""

    @abstractmethod
    def check(self) -> str:
        """What is there, in a few words; raises LumosError where it cannot be read."""

    @abstractmethod
    def read(self, watch: Watch) -> Discovery:
        """All datasets in one state of the place, which it does not change."""

    @abstractmethod
    def covers(self, path: str) -> bool:
        """Whether a dataset at that path would be found if it was there."""


class LakeSource(Source):
    """A source made of files, which the pipeline groups into datasets."""

    @abstractmethod
    def roots(self) -> tuple[Selection, ...]:
        """What to scan; raises LumosError where something is not there."""

    def problems(self) -> dict[str, SourceNotUsable]:
        """What is wrong with some of the roots, while others can be scanned."""
        return {}
