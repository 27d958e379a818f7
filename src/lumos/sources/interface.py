"""The interface of sources."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar, NamedTuple, TypeAlias
from urllib.parse import unquote

from msgspec.structs import replace

from lumos.config.sources import DatasetHint, FileStoreSettings
from lumos.errors import MisuseError
from lumos.model.discovery import Discovery, Problem
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.storage import DEFAULT_ACCESS, FileHint, FileSelection, StorageAccess

# A callback with the completed share of the work, from 0 to 1.
ReadProgress: TypeAlias = Callable[[float], None]


def hints_of(datasets: Iterable[DatasetHint]) -> tuple[FileHint, ...]:
    """Convert the hints of the configuration for executors."""
    return tuple(FileHint(hint.path, hint.name, hint.split) for hint in datasets)


def file_selection(
    settings: FileStoreSettings, root: str, access: StorageAccess = DEFAULT_ACCESS
) -> FileSelection:
    """The files below a root that the section of a source selects."""
    return FileSelection(
        root,
        settings.file_patterns,
        settings.exclude,
        settings.recursive,
        access,
        hints_of(settings.datasets),
        join_similar=settings.join_similar,
    )


class SourceNotUsable(MisuseError):
    """The source cannot be scanned; the message contains the next step."""

    def __init__(self, found: str, next_step: str) -> None:
        self.found = found
        self.next_step = next_step
        super().__init__(f"{found} {next_step}".strip())


class Source(ABC):
    """A source of datasets, configured by a section of `sources`."""

    kind: ClassVar[str]
    # Distinguishes accounts or endpoints of the same kind.
    instance: str = ""

    def __init__(self, settings: Any) -> None:
        """Store the section of the source, without connecting."""
        self._settings = settings
        self.instance = settings.instance

    @property
    def identity(self) -> str:
        """The kind and the instance, if there is one."""
        return f"{self.kind}@{self.instance}" if self.instance else self.kind

    @abstractmethod
    def urn(self, path: str, *, environment: str) -> Urn:
        """The URN of the dataset at a path of this source."""


class TableSource(Source):
    """A source that lists its datasets itself, such as a database.

    The path of a dataset consists of its names, with special characters encoded.
    """

    def urn(self, path: str, *, environment: str) -> Urn:
        parts = [unquote(part) for part in path.split("/")]
        return Urn.of(self.kind, parts, instance=self.instance, environment=environment)

    @property
    @abstractmethod
    def address(self) -> str:
        """Its location for messages, without secrets."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """The name of the part of the instance that the source covers, such as a database."""

    @abstractmethod
    def check(self) -> str:
        """A short description of the contents; raises LumosError if they are not readable."""

    @abstractmethod
    def read(self, report_progress: ReadProgress) -> Discovery:
        """All datasets in one consistent, read-only state."""

    @abstractmethod
    def covers(self, path: str) -> bool:
        """Whether the source would include a dataset at this path, if it exists."""


class RegisteredTable(NamedTuple):
    """A table of a metastore and the location of its data.

    `files`, `bytes` and `rows` are statistics, which may be outdated. `partition_count` is None if
    not all partitions could be read.
    """

    path: str
    location: str
    format: str = ""
    managed: bool = False
    partition_keys: tuple[str, ...] = ()
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    partition_count: int | None = None


class RegisteredPartition(NamedTuple):
    """A partition in a metastore; its values are in the order of the table's partition keys."""

    table: str
    values: tuple[str, ...]
    location: str


Registration: TypeAlias = RegisteredTable | RegisteredPartition
# Receives the partitions of each table, followed by the table.
Register: TypeAlias = Callable[[Registration], None]


class MetastoreSource(TableSource):
    """A source whose tables have their data in storage."""

    @abstractmethod
    def read_registered(self, register: Register, report_progress: ReadProgress) -> Discovery:
        """All tables, as `read` returns them; `register` is called for each table and partition."""

    def read(self, report_progress: ReadProgress) -> Discovery:
        return self.read_registered(lambda _: None, report_progress)


class QueryLogSource(ABC):
    """A database that keeps a log of its statements."""

    @abstractmethod
    def query_log(self) -> Iterator[Mapping[str, Any]]:
        """The entries of the log, in a layout of `usage`; raises LumosError if not readable."""


class SampleReader(ABC):
    """Takes samples of the pieces of a source; pickled for executors."""

    @abstractmethod
    def __call__(self, work: bytes) -> bytes:
        """The encoded sample of a piece, or its encoded failure."""

    @abstractmethod
    def close(self) -> None:
        """Close connections."""


class SampleTasks(NamedTuple):
    """The pieces of a source to sample, and the problems of other pieces."""

    pieces: list[bytes]
    problems: tuple[Problem, ...] = ()


class EarlierSchema(NamedTuple):
    """The properties of a dataset in the last scan, and its schema, which is loaded when needed."""

    properties: Mapping[str, str]
    load: Callable[[], Schema]

    @property
    def schema(self) -> Schema:
        return self.load()


# Looks up the last scan of the dataset at a path.
EarlierSchemas: TypeAlias = Callable[[str], EarlierSchema | None]
# Runs a reader on all pieces, here or on Spark, and returns the samples.
RunTasks: TypeAlias = Callable[[list[bytes], SampleReader], list[bytes]]


class SampledSource(TableSource):
    """A database without declared schemas, which are inferred from samples on Spark."""

    @abstractmethod
    def sample_tasks(self) -> SampleTasks:
        """The pieces to sample; raises LumosError if the source is not readable."""

    @abstractmethod
    def sample_reader(self) -> SampleReader:
        """The reader of samples."""

    @abstractmethod
    def build_discovery(self, samples: Sequence[bytes], known: EarlierSchemas) -> Discovery:
        """The datasets of the samples, merged with the results of earlier scans."""

    def read_samples(self, run_tasks: RunTasks, known: EarlierSchemas) -> Discovery:
        """All datasets; known fields stay in a schema even if they are missing from the sample."""
        tasks = self.sample_tasks()
        found = self.build_discovery(run_tasks(tasks.pieces, self.sample_reader()), known)
        return replace(found, problems=(*tasks.problems, *found.problems))

    def read(self, report_progress: ReadProgress) -> Discovery:
        def run_here(pieces: list[bytes], reader: SampleReader) -> list[bytes]:
            with closing(reader):
                samples = []
                for number, piece in enumerate(pieces, start=1):
                    samples.append(reader(piece))
                    report_progress(number / len(pieces))
                return samples

        return self.read_samples(run_here, lambda _path: None)


class IncrementalSource(TableSource):
    """A source that continues from what the last scan recorded."""

    @abstractmethod
    def read_changes(self, known: EarlierSchemas, report_progress: ReadProgress) -> Discovery:
        """All datasets, with the history since the last scan."""

    def read(self, report_progress: ReadProgress) -> Discovery:
        return self.read_changes(lambda _path: None, report_progress)


class LakeSource(Source):
    """A source of files, which the pipeline groups into datasets."""

    @abstractmethod
    def roots(self) -> tuple[FileSelection, ...]:
        """The roots to scan; raises LumosError if a root does not exist."""

    def problems(self) -> dict[str, SourceNotUsable]:
        """The problems of unusable roots, if other roots can be scanned."""
        return {}
