"""Where metadata comes from."""

from lumos.sources.interface import (
    LakeSource,
    Observer,
    SampledSource,
    Source,
    SourceNotUsable,
    TableSource,
    Watch,
    hints_of,
)

__all__ = [
    "LakeSource",
    "Observer",
    "SampledSource",
    "Source",
    "SourceNotUsable",
    "TableSource",
    "Watch",
    "hints_of",
]
