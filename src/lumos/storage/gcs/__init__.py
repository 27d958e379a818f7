"""Google Cloud Storage."""

from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.storage import GcsStorage

__all__ = ["GcsAccess", "GcsStorage"]
