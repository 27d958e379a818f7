"""A small world of SQL: tables with schemas, and models that are made from them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from lumos.impact.rules.graph import DatasetDerivation, Versions
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.results import DatasetImpact, Impact
from lumos.impact.rules.type_uses import StatementEffect
from lumos.impact.types.effects import effects
from lumos.lineage.reported_lineage import TableName
from lumos.lineage.sql import analyse, report_script
from lumos.model.lineage import Edge
from lumos.model.schema import Schema, parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

AT = datetime(2024, 1, 1, tzinfo=UTC)


def name(parts: Sequence[str]) -> str:
    return ".".join(parts)


class SqlGraph:
    """Tables and models by name; SQL of a model makes the table of its name unless it says so."""

    def __init__(
        self,
        schemas: Mapping[str, str],
        models: Mapping[str, str],
        *,
        dialect: str = "spark",
        owners: Mapping[str, str] | None = None,
        edges: Iterable[Edge] = (),
        without_sql: Iterable[str] = (),
    ) -> None:
        self.schemas = {table: parse_schema(text) for table, text in schemas.items()}
        self.dialect = dialect
        self._owners = owners or {}
        self._derivations: dict[str, list[DatasetDerivation]] = {}
        self.reasoned: list[str] = []
        for model, text in models.items():
            sql = text if "into" in text or text.startswith("create") else _model(model, text)
            self._add(f"models/{model}.sql", sql, keeps_sql=model not in set(without_sql))
        for edge in edges:
            self._derivations.setdefault(edge.downstream, []).append(
                DatasetDerivation(origin=edge.origin, edges=(edge,))
            )

    def _add(self, file: str, sql: str, *, keeps_sql: bool) -> None:
        script = analyse(sql, dialect=self.dialect, columns=self._columns, file=file)
        by_target: dict[str, list[Edge]] = {}
        for edge in report_script(script, reporter=f"sql:{file}").edges:
            assert isinstance(edge.upstream, TableName)
            assert isinstance(edge.downstream, TableName)
            target = name(edge.downstream.parts)
            by_target.setdefault(target, []).append(
                Edge(
                    upstream=name(edge.upstream.parts),
                    downstream=target,
                    origin=f"sql:{file}",
                    at=AT,
                    type=edge.type,
                    columns=edge.columns,
                    uses=edge.uses,
                )
            )
        for target, edges in by_target.items():
            derivation = DatasetDerivation(
                origin=f"sql:{file}",
                edges=tuple(edges),
                sql=sql if keeps_sql else None,
                dialect=self.dialect,
                file=file,
            )
            self._derivations.setdefault(target, []).append(derivation)

    def _columns(self, parts: tuple[str, ...]) -> list[str] | None:
        schema = self.schemas.get(name(parts))
        return None if schema is None else [field.name for field in schema.fields]

    # What the analysis asks.

    def links(self, urn: str) -> list[tuple[str, str]]:
        del urn
        return [
            (edge.upstream, edge.downstream)
            for derivations in self._derivations.values()
            for derivation in derivations
            for edge in derivation.edges
        ]

    def derivations(self, urn: str) -> list[DatasetDerivation]:
        return self._derivations.get(urn, [])

    def schema(self, urn: str) -> Schema | None:
        return self.schemas.get(urn)

    def owners(self, urn: str) -> tuple[str, ...]:
        return (self._owners[urn],) if urn in self._owners else ()

    def reason(
        self,
        derivation: DatasetDerivation,
        dataset: str,
        versions_of: Versions,
        *,
        with_fields: bool,
    ) -> Sequence[StatementEffect]:
        assert derivation.sql is not None
        self.reasoned.append(dataset)
        return effects(
            derivation.sql,
            dialect=derivation.dialect,
            tables=lambda parts: versions_of(name(parts)),
            is_wanted=lambda parts: name(parts) == dataset,
            with_fields=with_fields,
        )

    # What the tests ask.

    def change(self, table: str, after: str, *, with_reason: bool = True) -> Impact:
        """The impact of giving a table another schema."""
        findings = classify(compare(self.schemas[table], parse_schema(after)))
        return impact_of(table, findings, self, self.reason if with_reason else None)


def _model(table: str, query: str) -> str:
    return f"create table {table} as {query}"


def of(impact: Impact, urn: str) -> DatasetImpact:
    return next(each for each in impact.downstream if each.urn == urn)


def verdict_text(found: DatasetImpact) -> str:
    """A dataset's verdict and its reasons in one line each."""
    lines = [found.verdict.value]
    for reason in found.reasons:
        place = f", {reason.file}:{reason.line}" if reason.line else ""
        lines.append(f"{reason.text}{place}")
    return "\n".join(lines)
