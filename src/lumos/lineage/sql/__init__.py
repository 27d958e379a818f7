"""Column lineage of SQL: which columns are derived from which, and which influence them."""

from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import ColumnProvider
from lumos.lineage.sql.report import report_script
from lumos.lineage.sql.script import (
    ColumnEdge,
    ScriptLineage,
    SqlProblem,
    SqlText,
    StatementLineage,
    TableRead,
    TableWrite,
)

__all__ = [
    "ColumnEdge",
    "ColumnProvider",
    "ScriptLineage",
    "SqlProblem",
    "SqlText",
    "StatementLineage",
    "TableRead",
    "TableWrite",
    "analyse",
    "report_script",
]
