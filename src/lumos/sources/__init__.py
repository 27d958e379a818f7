"""Where metadata comes from."""

from lumos.sources.interface import LakeSource, Source

__all__ = ["LakeSource", "Source"]
