"""Converts the lineage of a script to reported lineage: edges between tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from lumos.lineage.reported_lineage import (
    DatasetReference,
    LineageProblem,
    LocationReference,
    ReportedEdge,
    ReportedLineage,
    ReportedScript,
    ReportedUnparsedStatement,
    TableName,
)
from lumos.lineage.sql.dialects import NameFolding, find_dialect
from lumos.lineage.sql.script import ColumnEdge, Parts, ScriptLineage, SqlText
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation
from lumos.model.paths import is_lineage_column

_FORMATS: Final = frozenset(
    {"parquet", "delta", "iceberg", "csv", "json", "orc", "avro", "text", "binaryfile"}
)


def report_script(
    script: ScriptLineage,
    *,
    reporter: str,
    platform: str | None = None,
    text: SqlText | None = None,
) -> ReportedLineage:
    """The reported lineage of a script, with table names as in the SQL.

    With `text`, the analysed text, its storable part is reported too.
    """
    by_pair: defaultdict[tuple[Parts, Parts], list[ColumnEdge]] = defaultdict(list)
    for edge in script.edges:
        if edge.to_table is not None:
            by_pair[edge.from_table, edge.to_table].append(edge)
    views: set[Parts] = set()
    for statement in script.statements:
        for write in statement.writes:
            if write.is_view:
                views.add(write.table)
            for source in write.sources:
                # There may be no column edges, as for COUNT(*).
                by_pair.setdefault((source, write.table), [])
    copies = _unchanged_copies(script)
    file = script.file
    return ReportedLineage(
        reporter=reporter,
        edges=tuple(
            ReportedEdge(
                upstream=_reference(source, platform),
                downstream=_reference(target, platform),
                type="VIEW" if target in views else "COPIED" if target in copies else "TRANSFORMED",
                columns=tuple(_mapping(edge, file) for edge in edges if edge.usage is None),
                uses=tuple(use for edge in edges if (use := _column_use(edge, file)) is not None),
            )
            for (source, target), edges in sorted(by_pair.items(), key=lambda pair: pair[0])
        ),
        scripts=()
        if text is None or not by_pair
        else (_stored_script(script.storable_text, text, by_pair, platform),),
        unparsed=tuple(_unparsed(script, platform)),
        problems=tuple(
            LineageProblem(
                place=file or reporter,
                reason=each.reason,
                statement=str(each.statement),
                line=each.line,
                severity=each.severity,
            )
            for each in script.unresolved
        ),
        coverage=script.coverage,
    )


def _unparsed(script: ScriptLineage, platform: str | None) -> Iterator[ReportedUnparsedStatement]:
    """The statements that could not be parsed, once per set of tables."""
    by_tables = {(each.reads, each.writes, each.others): each for each in reversed(script.unparsed)}
    for each in reversed(by_tables.values()):
        yield ReportedUnparsedStatement(
            line=each.line,
            file=script.file,
            reads=tuple(_reference(parts, platform) for parts in each.reads),
            writes=tuple(_reference(parts, platform) for parts in each.writes),
            others=tuple(_reference(parts, platform) for parts in each.others),
        )


def _stored_script(
    sql: str,
    text: SqlText,
    pairs: Iterable[tuple[Parts, Parts]],
    platform: str | None,
) -> ReportedScript:
    folding = NameFolding(find_dialect(text.dialect))
    tables: dict[Parts, DatasetReference] = {}
    for parts in sorted({parts for pair in pairs for parts in pair}):
        tables[parts] = _reference(parts, platform)
        # Edges have names in their original case; an analysis of the stored text folds names.
        folded = tuple(str(folding.text(part, quoted=True)) for part in parts)
        tables.setdefault(folded, tables[parts])
    return ReportedScript(
        sql=sql, dialect=text.dialect, file=text.file, tables=tuple(tables.items())
    )


def _reference(parts: Parts, platform: str | None) -> DatasetReference:
    """A reference to a table, or to a location as in Spark's parquet.`s3://x/y`."""
    is_path = len(parts) == 1 or (len(parts) == 2 and parts[0] in _FORMATS)
    if is_path and "/" in parts[-1]:
        return LocationReference(uri=parts[-1])
    return TableName(parts=parts, platform=platform)


def _unchanged_copies(script: ScriptLineage) -> set[Parts]:
    """The tables that are unchanged copies of one other table."""
    sources: defaultdict[Parts, set[Parts]] = defaultdict(set)
    changed_tables: set[Parts] = set()
    for edge in script.edges:
        if edge.to_table is None:
            continue
        sources[edge.to_table].add(edge.from_table)
        if edge.usage is None and not (
            edge.derivation is Derivation.IDENTITY and is_lineage_column(edge.from_column)
        ):
            # The column is computed, or a part of the original one.
            changed_tables.add(edge.to_table)
    derived_columns: defaultdict[Parts, set[str | None]] = defaultdict(set)
    for edge in script.edges:
        if edge.to_table is not None and edge.usage is None:
            derived_columns[edge.to_table].add(edge.to_column)
    for write in (write for statement in script.statements for write in statement.writes):
        sources[write.table].update(write.sources)
        if set(write.columns) - derived_columns[write.table]:
            # A column is a literal or a function without arguments.
            changed_tables.add(write.table)
    return {
        table
        for table, tables in sources.items()
        if len(tables) == 1 and table not in changed_tables
    }


def _mapping(edge: ColumnEdge, file: str | None) -> ColumnMapping:
    assert edge.to_column is not None
    return ColumnMapping(
        upstream=edge.from_column,
        downstream=edge.to_column,
        transformation=edge.expression,
        derivation=edge.derivation,
        cast_to=edge.cast_to,
        positional=edge.positional,
        star=edge.star,
        file=file,
        line=edge.line,
    )


def _column_use(edge: ColumnEdge, file: str | None) -> ColumnUse | None:
    if edge.usage is None:
        return None
    return ColumnUse(
        upstream=edge.from_column,
        usage=edge.usage,
        downstream=edge.to_column,
        expression=edge.expression,
        cast_to=edge.cast_to,
        negated=edge.negated,
        file=file,
        line=edge.line,
    )
