"""What a scan of a lake brings home."""

import msgspec

from lumos.model.dataset import DriftedShape, Location, Statistics
from lumos.model.schema import Schema


class FoundDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset as its files show it; `content` changes whenever a file does.

    `reverted` says that the schema just returned to an earlier one; `renamed_from` and
    `merged_from` are paths of datasets that earlier scans found and that are this one now.
    """

    path: str
    format: str
    location: Location
    schema: Schema
    statistics: Statistics
    drift: tuple[DriftedShape, ...]
    content: str
    reverted: bool = False
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A file or place that could not be read, and why; a remark is on one that was read."""

    path: str
    reason: str
    code: str
    remark: bool = False


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """All that one scan of a root found; an incomplete one must not make anything disappear."""

    datasets: tuple[FoundDataset, ...]
    problems: tuple[Problem, ...]
    files_listed: int
    files_read: int
    files_failed: int
    complete: bool
