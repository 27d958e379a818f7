"""Edges as short texts, with columns and not the fields inside."""

from collections.abc import Mapping, Sequence

from lumos.lineage.sql import ColumnEdge, ScriptLineage, analyse
from lumos.model.paths import lineage_column


def of(
    sql: str, dialect: str | None = None, schema: Mapping[str, Sequence[str]] | None = None
) -> ScriptLineage:
    known = schema or {}
    return analyse(sql, dialect=dialect, columns=lambda parts: known.get(".".join(parts)))


def text(edge: ColumnEdge) -> str:
    target = [*(edge.to_table or ()), *([] if edge.to_column is None else [edge.to_column])]
    source = (*edge.from_table, lineage_column(edge.from_column))
    return f"{'.'.join(source)} -> {'.'.join(target)}"


def direct(script: ScriptLineage) -> set[str]:
    return {text(edge) for edge in script.edges if edge.usage is None}


def uses(script: ScriptLineage) -> set[str]:
    return {f"{text(edge)} {edge.usage}" for edge in script.edges if edge.usage is not None}
