"""Delta Lake."""

from lumos.formats.tables.delta.reader import DeltaReader

__all__ = ["DeltaReader"]
