"""Iceberg tables, versions 1 to 3, by their metadata files alone."""

from lumos.formats.tables.iceberg.apart import Home, home_of
from lumos.formats.tables.iceberg.reader import IcebergReader

__all__ = ["Home", "IcebergReader", "home_of"]
