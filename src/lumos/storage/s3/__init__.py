"""Amazon S3, and whatever speaks its protocol."""

from lumos.storage.s3.access import S3Access
from lumos.storage.s3.storage import S3Storage

__all__ = ["S3Access", "S3Storage"]
