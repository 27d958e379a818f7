"""How datasets hang together: edges by reporter, jobs, walks and paths."""

from lumos.store.lineage.columns import ColumnNode, ColumnStep
from lumos.store.lineage.reading import LineageReader
from lumos.store.lineage.values import (
    ColumnPaths,
    ColumnWalk,
    Direction,
    KeptEdge,
    Link,
    MergedEdge,
    Reached,
    ReachedColumn,
    Reporter,
    Reporting,
    Walk,
    merged,
)
from lumos.store.lineage.writing import LineageWriter

__all__ = [
    "ColumnNode",
    "ColumnPaths",
    "ColumnStep",
    "ColumnWalk",
    "Direction",
    "KeptEdge",
    "LineageReader",
    "LineageWriter",
    "Link",
    "MergedEdge",
    "Reached",
    "ReachedColumn",
    "Reporter",
    "Reporting",
    "Walk",
    "merged",
]
