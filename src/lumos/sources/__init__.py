"""Where metadata comes from."""

from lumos.sources.interface import (
    LakeSource,
    Source,
    SourceNotUsable,
    TableSource,
    Watch,
    hints_of,
)

__all__ = ["LakeSource", "Source", "SourceNotUsable", "TableSource", "Watch", "hints_of"]
