"""Types of what SQL makes, and what becomes of them when the tables that it reads change."""

from lumos.impact.types.reasoning import effects

__all__ = ["effects"]
