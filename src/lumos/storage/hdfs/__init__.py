"""Hadoop file systems, with WebHDFS."""

from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.storage import HdfsStorage

__all__ = ["HdfsAccess", "HdfsStorage"]
