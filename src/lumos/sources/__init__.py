"""Sources of datasets: files, object stores and databases."""

from lumos.sources.interface import (
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
