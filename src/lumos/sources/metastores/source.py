"""Base classes of the sources of metastores: selection, problems and partitions."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from lumos.config.sources import MetastoreSettings
from lumos.model.compressed_list import CompressedList
from lumos.model.discovery import Discovery, FoundDataset, Problem
from lumos.sources.interface import (
    MetastoreSource,
    ReadProgress,
    Register,
    RegisteredPartition,
    RegisteredTable,
)
from lumos.sources.metastores.tables import MetastoreTable, dataset_of, registered_table
from lumos.sources.relational import TableSelection, names_in, path_of


class MetastoreEntry(NamedTuple):
    """A table of a metastore as a dataset; `registered` has the location of its data, if any."""

    found: FoundDataset
    registered: RegisteredTable | None = None


def entry_of(table: MetastoreTable, *, address: str) -> MetastoreEntry:
    """A table or view as a dataset."""
    is_view = table.kind == "view"
    return MetastoreEntry(
        dataset_of(table, address=address), None if is_view else registered_table(table)
    )


class MetastoreClient(ABC):
    """Reads the contents of one metastore."""

    @abstractmethod
    def databases(self) -> list[str]:
        """The names of all databases; raises SourceNotUsable."""

    @abstractmethod
    def entries(
        self, database: str, is_selected: Callable[[str], bool], report_progress: ReadProgress
    ) -> Iterator["MetastoreEntry | Problem"]:
        """The selected tables and views of a database, without those dropped during the scan.

        Raises UnreadableEntry or SourceNotUsable.
        """

    @abstractmethod
    def partitions(self, database: str, entry: MetastoreEntry) -> Iterator[RegisteredPartition]:
        """The partitions of a table; raises UnreadableEntry."""


class UnreadableEntry(Exception):
    """A database, table or list of partitions that cannot be read; the others can."""

    def __init__(self, reason: str, code: str) -> None:
        self.reason = reason
        self.code = code
        super().__init__(reason)

    def problem(self, path: str) -> Problem:
        """The problem to report for a path."""
        return Problem(path=path, reason=self.reason, code=self.code)


class SelectedTables(MetastoreSource):
    """A source with the tables of a metastore that the patterns of its section select."""

    # The product name in messages.
    label: str

    _settings: MetastoreSettings

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._selection = TableSelection(settings.databases, settings.tables, (), settings.exclude)

    @abstractmethod
    def _connect(self) -> AbstractContextManager[MetastoreClient]:
        """A client; raises SourceNotUsable, which the context also raises for failed calls."""

    @property
    def scope(self) -> str:
        # A constant: the selection may change between runs, and `covers` applies it.
        return "*"

    def covers(self, path: str) -> bool:
        *database, name = names_in(path)
        return self._selection.includes(".".join(database), name)

    def check(self) -> str:
        with self._connect() as client:
            count = sum(map(self._selection.includes_schema, client.databases()))
        databases = "1 database" if count == 1 else f"{count:,} databases"
        return f"{self.address}, {self.label}, {databases}"

    def read_registered(self, register: Register, report_progress: ReadProgress) -> Discovery:
        found = CompressedList(FoundDataset)
        with self._connect() as client:
            existing = client.databases()
            databases = sorted(filter(self._selection.includes_schema, existing))
            problems = list(self._selection.unknown_schemas(existing, noun="database"))
            for number, database in enumerate(databases):

                def report(share: float, number: int = number) -> None:
                    report_progress((number + share) / len(databases))

                is_selected = partial(self._selection.includes, database)
                entries = client.entries(database, is_selected, report)
                try:
                    for entry in entries:
                        if isinstance(entry, Problem):
                            problems.append(entry)
                        else:
                            found.append(
                                self._register(client, database, entry, register, problems)
                            )
                except UnreadableEntry as unreadable:
                    # A database that was dropped during the scan has no tables.
                    if unreadable.code != "gone":
                        problems.append(unreadable.problem(path_of(*database.split("."))))
        return Discovery(datasets=_with_distinct_identities(found), problems=tuple(problems))

    def _register(
        self,
        client: MetastoreClient,
        database: str,
        entry: MetastoreEntry,
        register: Register,
        problems: list[Problem],
    ) -> FoundDataset:
        found, registered = entry
        if registered is None:
            return found
        count: int | None = None
        if registered.partition_keys:
            try:
                count = 0
                for partition in client.partitions(database, entry):
                    register(partition)
                    count += 1  # noqa: SIM113 - counted as far as the partitions were read
            except UnreadableEntry as unreadable:
                count = None
                # The table itself was read, so this is a remark.
                problem = unreadable.problem(found.path)
                problems.append(replace(problem, remark=True))
        register(registered._replace(partition_count=count))
        statistics = replace(found.statistics, partition_count=count)
        return replace(found, statistics=statistics)


def _with_distinct_identities(found: Sequence[FoundDataset]) -> Sequence[FoundDataset]:
    """The datasets; an identity that several datasets have is removed from all of them."""
    counts = Counter(each.location.identity for each in found)
    del counts[None]
    if all(count == 1 for count in counts.values()):
        return found
    return CompressedList(
        FoundDataset,
        (
            replace(each, location=replace(each.location, identity=None))
            if counts[each.location.identity] > 1
            else each
            for each in found
        ),
    )
