"""Query logs: their statements, who ran them, and what they read and write."""

from lumos.usage.query_log.accessed import TableAccess, reference
from lumos.usage.query_log.analysis import Understood, possible_tables, understand
from lumos.usage.query_log.files import Log, Piece, UnreadableLog, look, pieces
from lumos.usage.query_log.layouts import FIELDS, LAYOUTS, Layout
from lumos.usage.query_log.moments import day_of, moment_of
from lumos.usage.query_log.normal import normal
from lumos.usage.query_log.reader import UNKNOWN_READER, Example, Left, Logged, Piecewise

__all__ = [
    "FIELDS", "LAYOUTS", "UNKNOWN_READER", "Example", "Layout", "Left", "Log", "Logged", "Piece",
    "Piecewise", "TableAccess", "Understood", "UnreadableLog", "day_of", "look", "moment_of",
    "normal", "pieces", "possible_tables", "reference", "understand",
]  # fmt: skip
