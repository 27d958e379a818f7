"""`lumos.catalogs.datahub_file` is where the file platform was until it moved to `datahub`."""

from lumos.catalogs.datahub.file_platform import DatahubFile

__all__ = ["DatahubFile"]
