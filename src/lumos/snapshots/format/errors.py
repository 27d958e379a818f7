"""What can be wrong with a snapshot, each with a path into its file."""

from pathlib import Path

from lumos.errors import LumosError, MisuseError


class SnapshotError(LumosError):
    """A snapshot that cannot be used; `path` leads into its file."""

    code = "format"

    def __init__(self, file: str | Path, path: str, problem: str) -> None:
        self.file = str(file)
        self.path = path
        self.problem = problem
        super().__init__(": ".join(part for part in (self.file, path, problem) if part))


class NotASnapshot(SnapshotError):
    """A file that is something else."""

    code = "not_a_snapshot"


class NewerSnapshot(SnapshotError):
    """A snapshot in a format that a later Lumos wrote."""

    code = "newer_version"


class TruncatedSnapshot(SnapshotError):
    """A snapshot whose end is missing."""

    code = "truncated"


class EditedSnapshot(SnapshotError):
    """A snapshot whose content is not what its hashes and counts say."""

    code = "hash"


class DuplicateEntry(SnapshotError):
    """The same name or URN stands twice."""

    code = "duplicate"


class EntryOutOfOrder(SnapshotError):
    """Entries of a streamed snapshot that do not stand in the order of their names or URNs."""

    code = "order"


class SnapshotTooLarge(SnapshotError):
    """More data than a reader should take in at once, such as a small file that unfolds to much."""

    code = "too_large"


class UnknownEncoding(MisuseError):
    """A file name that does not tell how a snapshot is or should be encoded."""

    def __init__(self, path: str | Path, endings: tuple[str, ...]) -> None:
        self.path = str(path)
        super().__init__(
            f"'{path}' does not say how the snapshot is encoded. "
            f"Give it one of these endings: {', '.join(endings)}"
        )
