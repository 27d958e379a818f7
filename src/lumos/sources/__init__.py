"""Where metadata comes from."""

from lumos.sources.interface import LakeSource, Source, SourceNotUsable

__all__ = ["LakeSource", "Source", "SourceNotUsable"]
