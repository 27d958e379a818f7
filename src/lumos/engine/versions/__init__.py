"""`lumos version`: which versions datasets have, and moving them by hand or for many at once."""

from lumos.engine.versions.desk import VersionDesk

__all__ = ["VersionDesk"]
