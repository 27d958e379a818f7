"""Which files of a root are looked at."""

from fnmatch import fnmatchcase
from typing import NamedTuple

from lumos.storage.interface import USUAL, Access


class Hint(NamedTuple):
    """Files that are one dataset whatever they look like, or with `split` one dataset each.

    Several paths form one dataset, which then has a name.
    """

    path: str | tuple[str, ...]
    name: str | None = None
    split: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, however many there are."""
        return (self.path,) if isinstance(self.path, str) else self.path


class Selection(NamedTuple):
    """A root, and which of its files count; a pattern with a slash means the path from the root.

    `hints` say which files are one dataset, or none together. Where `tables` count, their logs are
    read, the last `table_history` commits of each for the history of its schema. `join_similar`
    joins files of one folder, and numbered folders, that have the same columns.
    """

    root: str
    file_patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    access: Access = USUAL
    hints: tuple[Hint, ...] = ()
    tables: bool = True
    table_history: int = 10_000
    join_similar: bool = False

    def __contains__(self, path: object) -> bool:
        inside = str(path)[len(self.root) :].lstrip("/") or str(path).rpartition("/")[2]
        if not self.recursive and "/" in inside:
            return False
        wanted = not self.file_patterns or _matches(inside, self.file_patterns)
        return wanted and not _matches(inside, self.exclude)

    def has_table(self, root: str) -> bool:
        """Whether a table at a root counts; patterns of wanted files say nothing about tables."""
        inside = root[len(self.root) :].strip("/")
        if not inside:
            return True
        # A pattern for whatever lies in a folder leaves out the table that the folder is.
        return self.recursive and not any(
            _matches(path, self.exclude) for path in (inside, f"{inside}/")
        )


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2]
    return any(
        fnmatchcase(path, pattern.lstrip("/")) if "/" in pattern else fnmatchcase(name, pattern)
        for pattern in patterns
    )
