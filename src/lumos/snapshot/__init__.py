"""Portable snapshots: one documented format for all that is known of datasets."""

from lumos.model.catalog import Entry, GlossaryTerm, Group, Job, Other, Timestamps, User
from lumos.snapshot.document import Base, Counts, Facts, Hashes, Header, Selection
from lumos.snapshot.errors import SnapshotError
from lumos.snapshot.reading import Snapshot, open_snapshot
from lumos.snapshot.writing import write_snapshot

__all__ = [
    "Base",
    "Counts",
    "Entry",
    "Facts",
    "GlossaryTerm",
    "Group",
    "Hashes",
    "Header",
    "Job",
    "Other",
    "Selection",
    "Snapshot",
    "SnapshotError",
    "Timestamps",
    "User",
    "open_snapshot",
    "write_snapshot",
]
