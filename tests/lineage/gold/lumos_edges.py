"""Lumos's edges in the words of the gold set, which knows columns and not the fields inside."""

from lineage.gold.scoring import Case, Found, columns_of
from lumos.lineage.sql import analyse
from lumos.lineage.sql.script import ColumnEdge
from lumos.model.paths import lineage_column


def edges(case: Case) -> Found:
    """What Lumos says of a case."""
    script = analyse(case.sql, dialect=case.dialect, columns=columns_of(case))
    return Found(
        direct=frozenset(_text(edge) for edge in script.edges if edge.usage is None),
        indirect=frozenset(
            f"{_text(edge)} {edge.usage}" for edge in script.edges if edge.usage is not None
        ),
        unresolved=tuple(
            unresolved.reason for unresolved in script.unresolved if unresolved.severity == "error"
        ),
    )


def _text(edge: ColumnEdge) -> str:
    target = [*(edge.to_table or ()), *([] if edge.to_column is None else [edge.to_column])]
    source = (*edge.from_table, lineage_column(edge.from_column))
    return f"{'.'.join(source)} -> {'.'.join(target)}"
