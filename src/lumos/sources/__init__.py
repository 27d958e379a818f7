"""Where metadata comes from."""

from lumos.sources.interface import (
    LakeSource,
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
    "ReadProgress",
    "SampleReader",
    "SampledSource",
    "Source",
    "SourceNotUsable",
    "TableSource",
    "hints_of",
]
