"""What the engine asks of a source."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from lumos.config.sources import DatasetHint
from lumos.errors import MisuseError
from lumos.model.discovery import Discovery, Problem
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.storage import Hint, Selection

# Is told which share of the work is done.
Watch: TypeAlias = Callable[[float], None]


def hints_of(datasets: Iterable[DatasetHint]) -> tuple[Hint, ...]:
    """What the configuration says of files, as it travels to executors."""
    return tuple(Hint(each.path, each.name, each.split) for each in datasets)


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


class Observer(ABC):
    """Looks at one piece of a sampled source after the other; travels to executors by pickle."""

    @abstractmethod
    def __call__(self, work: bytes) -> bytes:
        """What is seen there; what cannot be read is an answer, too."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of connections."""


class Works(NamedTuple):
    """The pieces of a source to look at, and what is wrong with others."""

    pieces: list[bytes]
    problems: tuple[Problem, ...] = ()


class Remembered(NamedTuple):
    """What earlier scans know of a dataset: its schema, and what its place told beside it."""

    schema: Schema
    told: Mapping[str, str]


# What is known of the dataset at a path.
Known: TypeAlias = Callable[[str], Remembered | None]
# Lets an observer look at pieces, wherever that is done, and gives what it saw.
Spread: TypeAlias = Callable[[list[bytes], Observer], list[bytes]]


class SampledSource(TableSource):
    """A database that declares no schemas: they are learnt from samples, which Spark takes."""

    @abstractmethod
    def works(self) -> Works:
        """What there is to look at; raises LumosError where it cannot be read."""

    @abstractmethod
    def observer(self) -> Observer:
        """What looks at it."""

    @abstractmethod
    def discovery(self, answers: Sequence[bytes], known: Known) -> Discovery:
        """The datasets that were seen, in the light of what is known of them."""

    def sampled(self, spread: Spread, known: Known) -> Discovery:
        """All datasets; a sample that shows less than is known takes nothing back."""
        works = self.works()
        found = self.discovery(spread(works.pieces, self.observer()), known)
        return msgspec.structs.replace(found, problems=(*works.problems, *found.problems))

    def read(self, watch: Watch) -> Discovery:
        def here(pieces: list[bytes], observer: Observer) -> list[bytes]:
            with closing(observer):
                return [
                    _watched(observer(piece), watch, number / len(pieces))
                    for number, piece in enumerate(pieces, start=1)
                ]

        return self.sampled(here, lambda _path: None)


def _watched(answer: bytes, watch: Watch, share: float) -> bytes:
    watch(share)
    return answer


class LakeSource(Source):
    """A source made of files, which the pipeline groups into datasets."""

    @abstractmethod
    def roots(self) -> tuple[Selection, ...]:
        """What to scan; raises LumosError where something is not there."""

    def problems(self) -> dict[str, SourceNotUsable]:
        """What is wrong with some of the roots, while others can be scanned."""
        return {}
