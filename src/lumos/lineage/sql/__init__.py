"""Column lineage of SQL: which columns are derived from which, and which influence them."""

from lumos.lineage.sql.analysis import analyse, analyse_many
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
    "analyse_many",
    "report_script",
]
