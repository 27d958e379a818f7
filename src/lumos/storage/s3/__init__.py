"""Amazon S3 and compatible object stores."""

from lumos.storage.s3.access import S3Access
from lumos.storage.s3.storage import S3Storage

__all__ = ["S3Access", "S3Storage"]
