"""The interface of sources."""

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
from lumos.storage import FileHint, FileSelection

# Receives the share of the work that is done.
ReadProgress: TypeAlias = Callable[[float], None]


def hints_of(datasets: Iterable[DatasetHint]) -> tuple[FileHint, ...]:
    """The hints of the configuration in the form that executors receive."""
    return tuple(FileHint(each.path, each.name, each.split) for each in datasets)


class SourceNotUsable(MisuseError):
    """A source that cannot be scanned, and what to do about it."""

    def __init__(self, found: str, next_step: str) -> None:
        self.found = found
        self.next_step = next_step
        super().__init__(f"{found} {next_step}".strip())


class Source(ABC):
    """A source of datasets, as a section of the configuration describes it."""

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
    """A source that lists its datasets itself, such as a database."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Its location for messages, without secrets."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """What of its instance it speaks for, whatever address that has: a database's name."""

    @abstractmethod
    def check(self) -> str:
        """What is there, in a few words; raises LumosError where it cannot be read."""

    @abstractmethod
    def read(self, watch: ReadProgress) -> Discovery:
        """All datasets in one state of the place, which it does not change."""

    @abstractmethod
    def covers(self, path: str) -> bool:
        """Whether a dataset at that path would be found if it was there."""


class SampleReader(ABC):
    """Samples one piece of a source after the other; it is pickled for executors."""

    @abstractmethod
    def __call__(self, work: bytes) -> bytes:
        """The encoded sample of a piece; a failure is part of it."""

    @abstractmethod
    def close(self) -> None:
        """Close connections."""


class SampleTasks(NamedTuple):
    """The pieces of a source to sample, and the problems of others."""

    pieces: list[bytes]
    problems: tuple[Problem, ...] = ()


class EarlierSchema(NamedTuple):
    """The schema and the properties of a dataset in the last scan."""

    schema: Schema
    told: Mapping[str, str]


# Looks up the last scan of the dataset at a path.
EarlierSchemas: TypeAlias = Callable[[str], EarlierSchema | None]
# Runs a reader on all pieces, here or on Spark, and returns the samples.
RunTasks: TypeAlias = Callable[[list[bytes], SampleReader], list[bytes]]


class SampledSource(TableSource):
    """A database without declared schemas: they are inferred from samples, taken on Spark."""

    @abstractmethod
    def works(self) -> SampleTasks:
        """What to sample; raises LumosError if the source cannot be read."""

    @abstractmethod
    def observer(self) -> SampleReader:
        """The reader of samples."""

    @abstractmethod
    def discovery(self, answers: Sequence[bytes], known: EarlierSchemas) -> Discovery:
        """The datasets of the samples, merged with what earlier scans found."""

    def sampled(self, spread: RunTasks, known: EarlierSchemas) -> Discovery:
        """All datasets; fields missing from a sample are kept."""
        works = self.works()
        found = self.discovery(spread(works.pieces, self.observer()), known)
        return msgspec.structs.replace(found, problems=(*works.problems, *found.problems))

    def read(self, watch: ReadProgress) -> Discovery:
        def here(pieces: list[bytes], observer: SampleReader) -> list[bytes]:
            with closing(observer):
                return [
                    _watched(observer(piece), watch, number / len(pieces))
                    for number, piece in enumerate(pieces, start=1)
                ]

        return self.sampled(here, lambda _path: None)


def _watched(answer: bytes, watch: ReadProgress, share: float) -> bytes:
    watch(share)
    return answer


class LakeSource(Source):
    """A source made of files, which the pipeline groups into datasets."""

    @abstractmethod
    def roots(self) -> tuple[FileSelection, ...]:
        """What to scan; raises LumosError where something is not there."""

    def problems(self) -> dict[str, SourceNotUsable]:
        """What is wrong with some of the roots, while others can be scanned."""
        return {}
