"""Errors of snapshots, each with a path inside the file."""

from pathlib import Path

from lumos.errors import LumosError, MisuseError


class SnapshotError(LumosError):
    """The snapshot cannot be used; `path` is the path of the problem inside the file."""

    code = "format"

    def __init__(self, file: str | Path, path: str, problem: str) -> None:
        self.file = str(file)
        self.path = path
        self.problem = problem
        super().__init__(": ".join(part for part in (self.file, path, problem) if part))


class NotASnapshot(SnapshotError):
    """The file is not a snapshot."""

    code = "not_a_snapshot"


class NewerSnapshot(SnapshotError):
    """The snapshot was written by a newer version of Lumos."""

    code = "newer_version"


class TruncatedSnapshot(SnapshotError):
    """The end of the snapshot is missing."""

    code = "truncated"


class EditedSnapshot(SnapshotError):
    """The contents do not match the hashes or counts."""

    code = "hash"


class DuplicateEntry(SnapshotError):
    """A name or URN is duplicated."""

    code = "duplicate"


class EntryOutOfOrder(SnapshotError):
    """The entries of a streamed snapshot are not ordered by name or URN."""

    code = "order"


class SnapshotTooLarge(SnapshotError):
    """The snapshot is too large to read, for example after decompression."""

    code = "too_large"


class UnknownEncoding(MisuseError):
    """The file does not have the extension of a snapshot."""

    def __init__(self, path: str | Path, endings: tuple[str, ...]) -> None:
        self.path = str(path)
        super().__init__(
            f"'{path}' has no extension of a snapshot: {', '.join(endings)}. "
            "Write one with: lumos export backup.json"
        )
