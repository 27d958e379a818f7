"""Sources of datasets: files, object stores and databases."""

from lumos.sources.interface import (
    IncrementalSource,
    LakeSource,
    MetastoreSource,
    QueryLogSource,
    ReadProgress,
    SampledSource,
    SampleReader,
    Source,
    SourceNotUsable,
    TableSource,
    hints_of,
)

__all__ = [
    "IncrementalSource",
    "LakeSource",
    "MetastoreSource",
    "QueryLogSource",
    "ReadProgress",
    "SampleReader",
    "SampledSource",
    "Source",
    "SourceNotUsable",
    "TableSource",
    "hints_of",
]
