"""Lineage between datasets: edges by reporter, jobs, walks and paths."""

from lumos.store.lineage.edges import (
    LineageChanges,
    LineageReporter,
    MergedEdge,
    StoredEdge,
    merge_edges,
)
from lumos.store.lineage.reader import LineageReader
from lumos.store.lineage.walks import (
    ColumnNode,
    ColumnPaths,
    ColumnStep,
    ColumnWalk,
    Direction,
    Link,
    ReachedColumn,
    ReachedDataset,
    Walk,
)
from lumos.store.lineage.writer import LineageWriter, ReporterContents

__all__ = [
    "ColumnNode",
    "ColumnPaths",
    "ColumnStep",
    "ColumnWalk",
    "Direction",
    "LineageChanges",
    "LineageReader",
    "LineageReporter",
    "LineageWriter",
    "Link",
    "MergedEdge",
    "ReachedColumn",
    "ReachedDataset",
    "ReporterContents",
    "StoredEdge",
    "Walk",
    "merge_edges",
]
