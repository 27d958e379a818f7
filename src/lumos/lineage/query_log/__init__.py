"""Query logs: their statements, who ran them, and what they read and write."""

from lumos.lineage.query_log.accessed import TableAccess, reference
from lumos.lineage.query_log.files import Log, Piece, UnreadableLog, look, pieces
from lumos.lineage.query_log.layouts import FIELDS, LAYOUTS, Layout
from lumos.lineage.query_log.moments import day_of, moment_of
from lumos.lineage.query_log.normal import normal
from lumos.lineage.query_log.reading import UNKNOWN_READER, Example, Left, Logged, Piecewise
from lumos.lineage.query_log.understanding import Understood, possible_tables, understand

__all__ = [
    "FIELDS", "LAYOUTS", "UNKNOWN_READER", "Example", "Layout", "Left", "Log", "Logged", "Piece",
    "Piecewise", "TableAccess", "Understood", "UnreadableLog", "day_of", "look", "moment_of",
    "normal", "pieces", "possible_tables", "reference", "understand",
]  # fmt: skip
