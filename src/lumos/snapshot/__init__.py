"""Portable snapshots: one documented format for all that is known of datasets."""

from lumos.model.catalog import Entry, GlossaryTerm, Group, Job, Other, Timestamps, User
from lumos.snapshot.checking import Problem
from lumos.snapshot.comparison import compare
from lumos.snapshot.differences import ASPECTS_BESIDE, COMPARED, Difference, Judge
from lumos.snapshot.document import Base, Counts, Facts, Hashes, Header, Selection
from lumos.snapshot.errors import SnapshotError
from lumos.snapshot.reading import Snapshot, open_snapshot
from lumos.snapshot.validation import Validation, validate
from lumos.snapshot.writing import write_snapshot

__all__ = [
    "ASPECTS_BESIDE",
    "COMPARED",
    "Base",
    "Counts",
    "Difference",
    "Entry",
    "Facts",
    "GlossaryTerm",
    "Group",
    "Hashes",
    "Header",
    "Job",
    "Judge",
    "Other",
    "Problem",
    "Selection",
    "Snapshot",
    "SnapshotError",
    "Timestamps",
    "User",
    "Validation",
    "compare",
    "open_snapshot",
    "validate",
    "write_snapshot",
]
