"""Hudi: a timeline of instants beside the data files tells which of them count."""

from lumos.formats.tables.hudi.table import HudiReader

__all__ = ["HudiReader"]
