"""Says of files in tables whether they are live, by what a scan read of the table, or afresh."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from lumos.discovery.table_folder import folder_of, home_around
from lumos.discovery.tables import Memory, TableKept, live_files, memory_of
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables import KINDS, READERS
from lumos.formats.tables.interface import TableFacts
from lumos.model.json_codec import from_json, to_json
from lumos.storage import (
    FileSelection,
    KeyRange,
    ListedFile,
    ListingItem,
    StorageAccess,
    TableRoot,
    storage_of,
)
from lumos.storage.table_roots import (
    METADATA_FOLDER,
    misplaced_metadata_folder,
    outermost_roots,
    table_root_in,
)
from lumos.storage.uris import absolute

TableVerdict: TypeAlias = Literal["dataset", "log", "not_live", "unreadable"]
# A file lies no deeper in its table than this, partitions and all.
_DEEPEST: Final = 12
# A folder that lists so much before any log is hardly a table's root.
_ENOUGH: Final = 5000


class InTable(NamedTuple):
    """What a file or folder is to the table that it lies in."""

    verdict: TableVerdict
    reason: str
    files_here: int = 0


class SeenTable:
    """A table of a lake."""

    def __init__(
        self, root: str, kept: TableKept, selection: FileSelection, state_access: StorageAccess
    ) -> None:
        self.root = root
        self._kept = kept
        self._selection = selection
        self._state_access = state_access

    @cached_property
    def kind(self) -> str:
        """The format that speaks for the table."""
        return next(kind for kind in KINDS if kind in self._kept.kinds)

    @cached_property
    def _memory(self) -> Memory | None:
        kept = memory_of(self._kept, self._state_access)
        if kept is not None:
            return kept
        try:
            selection = self._selection
            storage = storage_of(selection.root, selection.access)
            folder = folder_of(storage, self.root, self._kept.log, scanned=selection.root)
            facts, memory = READERS[self.kind].read(folder, None, most_commits=0)
        except (UnreadableFile, OSError):
            return None
        return Memory(self.kind, to_json(facts), memory)

    @cached_property
    def facts(self) -> TableFacts | None:
        """What is known of it; nothing where it cannot be read."""
        return None if self._memory is None else from_json(self._memory.facts, TableFacts)

    @property
    def reason(self) -> str:
        """Why its files are one dataset."""
        title = READERS[self.kind].title
        if self.facts is None:
            return f"a log of {title} lies in {self.root}, but cannot be read"
        return f"a log of {title} in its folder says which files are its data"

    def holds(self, path: str) -> InTable:
        """What a path in it is to the table."""
        below = f"{path}/"
        is_in_log = any(below.startswith(f"{log}/") for log in self._logs())
        if is_in_log or table_root_in(path[len(self.root) + 1 :]) is not None:
            return self._log
        if self._memory is None:
            return InTable("unreadable", self.reason)
        here = 0
        for file in live_files(self._memory):
            place = absolute(file.path, self.root)
            here += place == path or place.startswith(below)
            if any(absolute(each.path, self.root) == path for each in file.deletes):
                reason = f"it says which rows of the table {self.root} are deleted"
                return InTable("log", reason)
        if here or path == self.root:
            return InTable("dataset", self.reason, here)
        return InTable(
            "not_live",
            f"no file of the current version of the table {self.root}: removed, replaced, or not "
            "committed; older versions and branches may have it",
        )

    @property
    def _log(self) -> InTable:
        return InTable("log", f"it is part of the log of the table {self.root}")

    def _logs(self) -> Iterator[str]:
        folders = {"delta": "_delta_log", "hudi": ".hoodie", "iceberg": METADATA_FOLDER}
        for kind in self._kept.kinds:
            yield f"{self.root}/{folders[kind]}"
        if self._kept.log:
            yield self._kept.log


class Tables:
    """The tables of a root, as a scan knew them or as a look at it shows them."""

    def __init__(
        self,
        selection: FileSelection,
        kept: Mapping[str, TableKept],
        *,
        state_access: StorageAccess,
    ) -> None:
        self._kept = kept
        self._seen = {
            root: SeenTable(root, each, selection, state_access) for root, each in kept.items()
        }

    def around(self, path: str) -> SeenTable | None:
        """The table that a path lies in, if it does, rather than one that also has its file."""
        inside = f"{path}/"
        for root, table in self._seen.items():
            if inside.startswith(f"{root}/"):
                return table
        for root, kept in self._kept.items():
            if any(inside.startswith(f"{claim}/") for claim in kept.claims):
                return self._seen[root]
        return None

    def sharing(self, path: str) -> list[SeenTable]:
        """The tables outside of a path that may have it, or some of what lies in it."""
        inside = f"{path}/"
        return [
            self._seen[root]
            for root, kept in sorted(self._kept.items())
            if any(
                inside.startswith(f"{claim}/") or claim.startswith(inside) for claim in kept.claims
            )
        ]

    def below(self, folder: str) -> list[SeenTable]:
        """The tables whose roots lie in a folder."""
        inside = f"{folder.rstrip('/')}/"
        return [table for root, table in sorted(self._seen.items()) if root.startswith(inside)]


def tables_among(listings: Sequence[ListingItem], selection: FileSelection) -> dict[str, TableKept]:
    """The tables that a listing shows, by root, as if a scan had not read them yet."""
    if not selection.tables:
        return {}
    roots = outermost_roots(each for each in listings if isinstance(each, TableRoot))
    found = {root: TableKept(kinds, "", "") for root, kinds in roots.items()}
    storage = storage_of(selection.root, selection.access)
    strays = {
        misplaced_metadata_folder(each.path) for each in listings if isinstance(each, ListedFile)
    }
    for log in sorted(filter(None, strays)):
        try:
            home = home_around(storage, log, scanned=selection.root)
        except (UnreadableFile, OSError):
            # Then its files are what they look like, as a scan would say.
            continue
        found.setdefault(home.root, TableKept(("iceberg",), "", "", (log,), log))
    return found


def root_above(path: str, selection: FileSelection) -> str | None:
    """The root of the table that a path lies in, where no scan could tell."""
    if not selection.tables:
        return None
    storage = storage_of(path, selection.access)
    folder = path
    for _ in range(_DEEPEST):
        listings = islice(storage.walk(KeyRange(folder, deep=False)), _ENOUGH)
        if any(isinstance(each, TableRoot) for each in listings):
            return folder
        folder = folder.rpartition("/")[0]
        if not folder or folder.endswith(":/"):
            return None
    return None
