"""Portable snapshots: taking them, checking them, bringing them into catalogs, comparing them."""

from lumos.engine.snapshots.snapshots import Snapshots

__all__ = ["Snapshots"]
