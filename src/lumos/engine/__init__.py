"""One function per user verb; the only place that joins storage, Spark, rules and store."""

from lumos.engine.lumos import Lumos

__all__ = ["Lumos"]
