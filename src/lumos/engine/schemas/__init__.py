"""The verbs of `lumos schema`: compare, look back, predict, and keep schemas as code."""

from lumos.engine.schemas.schemas import Schemas

__all__ = ["Schemas"]
