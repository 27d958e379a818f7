"""Google Cloud Storage, by its XML API."""

from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.storage import GcsStorage

__all__ = ["GcsAccess", "GcsStorage"]
