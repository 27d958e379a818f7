"""The sample estate as the analysis of impact asks for it, without a store."""

from collections.abc import Sequence
from datetime import UTC, datetime

from impact.cases import ADDED, REMOVED, UNKNOWN, Case, Verdict
from impact.sample_inventory import Model, SampleInventory
from lumos.impact.rules.graph import DatasetDerivation, Versions
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.results import ColumnImpact, DatasetImpact, Impact
from lumos.impact.rules.type_uses import StatementEffect
from lumos.impact.types.effects import effects
from lumos.lineage.reported_lineage import TableName
from lumos.lineage.sql import report_script
from lumos.lineage.sql_files import create_statement, parse_sql_file
from lumos.model.lineage import Edge
from lumos.model.schema import Schema
from lumos.model.types import Unknown
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

AT = datetime(2024, 1, 1, tzinfo=UTC)
DECLARED = "declared"


class InventoryDownstream:
    """Links, derivations, schemas and owners of the sample estate, and reasoning through its SQL."""

    def __init__(self, sample: SampleInventory) -> None:
        self._sample = sample
        self._derivations: dict[str, list[DatasetDerivation]] = {}
        for model in sample.models:
            self._add(model)
        for upstream, downstream in sample.declared:
            edge = Edge(upstream=upstream, downstream=downstream, origin=DECLARED, at=AT)
            self._derivations.setdefault(downstream, []).append(
                DatasetDerivation(origin=DECLARED, edges=(edge,))
            )
        self._links = [
            (edge.upstream, edge.downstream)
            for derivations in self._derivations.values()
            for derivation in derivations
            for edge in derivation.edges
        ]

    def _add(self, model: Model) -> None:
        by_target: dict[str, list[Edge]] = {}
        for reported in report_script(model.script, reporter=model.file).edges:
            assert isinstance(reported.upstream, TableName)
            assert isinstance(reported.downstream, TableName)
            edge = Edge(
                upstream=name_of(reported.upstream.parts),
                downstream=name_of(reported.downstream.parts),
                origin=model.file,
                at=AT,
                type=reported.type,
                columns=reported.columns,
                uses=reported.uses,
            )
            by_target.setdefault(edge.downstream, []).append(edge)
        sql = (
            create_statement(parse_sql_file(model.text, name=model.file), model.dialect)
            or model.text
        )
        for target, edges in by_target.items():
            derivation = DatasetDerivation(
                origin=model.file,
                edges=tuple(edges),
                sql=sql,
                dialect=model.dialect,
                file=model.file,
            )
            self._derivations.setdefault(target, []).append(derivation)

    # What the analysis asks.

    def links(self, urn: str) -> Sequence[tuple[str, str]]:
        del urn
        return self._links

    def derivations(self, urn: str) -> Sequence[DatasetDerivation]:
        return self._derivations.get(urn, ())

    def schema(self, urn: str) -> Schema | None:
        return self._sample.tables[urn].schema if urn in self._sample.tables else None

    def owners(self, urn: str) -> tuple[str, ...]:
        owner = self._sample.owner(urn)
        return () if owner is None else (owner,)

    def reason(
        self,
        derivation: DatasetDerivation,
        dataset: str,
        versions_of: Versions,
        *,
        with_fields: bool,
    ) -> Sequence[StatementEffect]:
        assert derivation.sql is not None
        return effects(
            derivation.sql,
            dialect=derivation.dialect,
            tables=lambda parts: versions_of(name_of(parts)),
            is_wanted=lambda parts: name_of(parts) == dataset,
            with_fields=with_fields,
        )

    # What tests ask.

    def impact(self, dataset: str, proposed: Schema) -> Impact:
        """What it does to give a table another schema."""
        present = self._sample.tables[dataset].schema
        return impact_of(dataset, classify(compare(present, proposed)), self, self.reason)

    def impact_of_case(self, case: Case) -> Impact:
        return self.impact(case.dataset, case.proposed)


def name_of(parts: Sequence[str]) -> str:
    return ".".join(parts).lower()


def verdict_of(found: DatasetImpact) -> Verdict:
    return Verdict(found.verdict.value.upper())


def columns_of(found: DatasetImpact) -> dict[str, str]:
    """The columns that change, worded as the expectations do."""
    return {column.name: _worded(column) for column in found.columns}


def _worded(column: ColumnImpact) -> str:
    before, after = column.before, column.after
    if after is None:
        return REMOVED
    if before is None:
        return ADDED
    if before.type != after.type:
        new = UNKNOWN if isinstance(after.type, Unknown) else after.type.text
        return f"{before.type.text} -> {new}"
    if before.nullable != after.nullable:
        return "required -> nullable" if after.nullable else "nullable -> required"
    return UNKNOWN
