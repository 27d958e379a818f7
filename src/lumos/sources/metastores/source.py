"""What the sources of all metastores have in common: selection, problems and partitions."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from lumos.config.sources import MetastoreSettings
from lumos.errors import did_you_mean
from lumos.model.discovery import Discovery, FoundDataset, Problem
from lumos.model.urn import Urn
from lumos.sources.interface import (
    MetastoreSource,
    ReadProgress,
    Register,
    RegisteredPartition,
    RegisteredTable,
)
from lumos.sources.metastores.tables import is_database_selected, is_selected, path_of


class MetastoreEntry(NamedTuple):
    """A table of a metastore as a dataset, and where its data is; views have no data."""

    found: FoundDataset
    registered: RegisteredTable | None = None


class MetastoreClient(ABC):
    """Reads the contents of one metastore."""

    @abstractmethod
    def databases(self) -> list[str]:
        """The names of all databases; raises SourceNotUsable."""

    @abstractmethod
    def entries(
        self, database: str, is_selected: Callable[[str], bool], report_progress: ReadProgress
    ) -> Iterator["MetastoreEntry | Problem"]:
        """The selected tables and views of a database, without those dropped meanwhile.

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
    """The tables of a metastore that the patterns of its section select."""

    # What users call the server, for messages.
    label: str

    def __init__(self, settings: Any) -> None:
        self._settings: MetastoreSettings = settings
        self.instance = settings.instance

    @abstractmethod
    def _connect(self) -> AbstractContextManager[MetastoreClient]:
        """A client; raises SourceNotUsable, which the context also raises for failed calls."""

    @property
    def scope(self) -> str:
        # The selected databases may change between runs; `covers` decides.
        return "*"

    def urn(self, path: str, *, environment: str) -> Urn:
        parts = [unquote(part) for part in path.split("/")]
        return Urn.of(self.kind, parts, instance=self.instance, environment=environment)

    def covers(self, path: str) -> bool:
        database, _, name = path.rpartition("/")
        return self._is_selected(".".join(map(unquote, database.split("/"))), unquote(name))

    def check(self) -> str:
        with self._connect() as client:
            count = len(self._databases(client))
        databases = "1 database" if count == 1 else f"{count:,} databases"
        return f"{self.address}, {self.label}, {databases}"

    def read_registered(self, register: Register, report_progress: ReadProgress) -> Discovery:
        found: list[FoundDataset] = []
        with self._connect() as client:
            databases = self._databases(client)
            problems = list(self._unknown_databases(client, databases))
            for number, database in enumerate(databases):
                report = partial(_report_part, report_progress, number, len(databases))
                entries = client.entries(database, partial(self._is_selected, database), report)
                try:
                    for entry in entries:
                        if isinstance(entry, Problem):
                            problems.append(entry)
                        else:
                            found.append(
                                self._register(client, database, entry, register, problems)
                            )
                except UnreadableEntry as unreadable:
                    # A database that was dropped meanwhile has no tables.
                    if unreadable.code != "gone":
                        problems.append(unreadable.problem(path_of(*database.split("."))))
        return Discovery(datasets=tuple(_with_distinct_identities(found)), problems=tuple(problems))

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
                problems.append(msgspec.structs.replace(problem, remark=True))
        register(registered._replace(partition_count=count))
        statistics = msgspec.structs.replace(found.statistics, partition_count=count)
        return msgspec.structs.replace(found, statistics=statistics)

    def _databases(self, client: MetastoreClient) -> list[str]:
        return sorted(
            name
            for name in client.databases()
            if is_database_selected(name, self._settings.databases)
        )

    def _is_selected(self, database: str, name: str) -> bool:
        settings = self._settings
        return is_selected(
            database,
            name,
            databases=settings.databases,
            tables=settings.tables,
            exclude=settings.exclude,
        )

    def _unknown_databases(
        self, client: MetastoreClient, selected: Sequence[str]
    ) -> Iterator[Problem]:
        """Warnings about configured databases that do not exist."""
        for wanted in self._settings.databases:
            if not any(is_database_selected(name, (wanted,)) for name in selected):
                hint = did_you_mean(wanted, client.databases())
                yield Problem(
                    path=path_of(wanted),
                    reason=f"there is no database '{wanted}'.{hint}",
                    code="no_such_database",
                    remark=True,
                )


def _report_part(report: ReadProgress, number: int, count: int, share: float) -> None:
    """Report the share of all databases after a share of one of them."""
    report((number + share) / count)


def _with_distinct_identities(found: list[FoundDataset]) -> Iterator[FoundDataset]:
    """The datasets; an identity that several have is no identity."""
    counts = Counter(each.location.identity for each in found)
    for each in found:
        if each.location.identity is not None and counts[each.location.identity] > 1:
            location = msgspec.structs.replace(each.location, identity=None)
            yield msgspec.structs.replace(each, location=location)
        else:
            yield each
