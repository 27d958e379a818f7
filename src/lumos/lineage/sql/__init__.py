"""Column lineage of SQL: which columns become which, and which decide about them."""

from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import Columns
from lumos.lineage.sql.many import SqlText, analyse_many
from lumos.lineage.sql.report import reported
from lumos.lineage.sql.script import (
    ColumnEdge,
    Script,
    Statement,
    TableRead,
    TableWrite,
    Unresolved,
)

__all__ = [
    "ColumnEdge",
    "Columns",
    "Script",
    "SqlText",
    "Statement",
    "TableRead",
    "TableWrite",
    "Unresolved",
    "analyse",
    "analyse_many",
    "reported",
]
