"""Usage: who read what and when."""

from lumos.engine.usage.desk import UsageDesk

__all__ = ["UsageDesk"]
