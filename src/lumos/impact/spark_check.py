"""Spark check: Spark analyses the SQL downstream with the current and the proposed schemas."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lumos.config.settings import Settings
from lumos.impact.context import analyse_derivation
from lumos.impact.reports import CheckState, SparkCheckReport
from lumos.impact.rules.graph import DatasetDerivation, DownstreamGraph, RankedGraph
from lumos.impact.rules.results import ColumnImpact, DatasetImpact, Impact
from lumos.impact.rules.type_uses import TableVersions
from lumos.model.change import Verdict
from lumos.model.conversions.spark import schema_from_spark, schema_to_spark
from lumos.model.schema import Field, Schema
from lumos.model.types import NULL, UNKNOWN, Array, DataType, Map, Struct, Unknown
from lumos.progress import Progress, no_progress

if TYPE_CHECKING:
    from lumos.impact.job import SparkAnalyzer, StoreTarget
    from lumos.impact.spark_statements import ScriptChecks, StatementCheck

_Parts = tuple[str, ...]
_ResultSchemas = tuple[Schema, Schema]


class SchemaPair(NamedTuple):
    """The schema of a dataset before and after the change."""

    present: Schema
    proposed: Schema

    @property
    def is_unchanged(self) -> bool:
        return self.present == self.proposed


class CheckNotPossible(Exception):
    """A statement that cannot be checked on Spark."""


def check_downstream_on_spark(
    settings: Settings, context: DownstreamGraph, impact: Impact, present: Schema | None,
    proposed: Schema | None, progress: Progress,
) -> dict[str, tuple[SparkCheckReport, ...]]:  # fmt: skip
    """Check the statements of each downstream dataset on Spark; return the reports by URN.

    Queries are only analysed, over empty temporary views that are dropped afterwards.
    """
    from lumos.impact.job import start_spark_analyzer

    scripts = _ParsedScripts()
    texts = [
        (derivation.sql, derivation.dialect)
        for dataset in impact.downstream
        for derivation in context.derivations(dataset.urn)
        if derivation.sql is not None
    ]
    spark = settings.spark
    progress("starting Spark")
    with start_spark_analyzer(
        master=spark.master,
        settings=spark.properties(),
        # Parse the scripts while Spark starts.
        while_starting=lambda: scripts.read(texts),
    ) as analyzer:
        progress("checking on Spark")
        start = None if present is None or proposed is None else SchemaPair(present, proposed)
        check = SparkCheck(analyzer, context, impact, start, scripts=scripts)
        return dict(check.reports(progress))


class _ParsedScripts:
    """Caches the checks of scripts, so that each script is parsed once."""

    def __init__(self) -> None:
        self._parsed: dict[tuple[str, str | None], ScriptChecks] = {}

    def read(self, texts: Iterable[tuple[str, str | None]]) -> None:
        """Parse scripts in advance."""
        for sql, dialect in texts:
            self.of(sql, dialect)

    def of(self, sql: str, dialect: str | None) -> "ScriptChecks":
        from lumos.impact.spark_statements import checks_of_script

        if (sql, dialect) not in self._parsed:
            self._parsed[sql, dialect] = checks_of_script(sql, dialect=dialect)
        return self._parsed[sql, dialect]


class _Outcome(NamedTuple):
    """The outcome of a check, with the result schemas before and after if Spark returned them."""

    state: CheckState
    error: str | None = None
    results: _ResultSchemas | None = None


class SparkCheck:
    """Checks datasets in order, each with the new schemas of the datasets upstream."""

    def __init__(
        self,
        analyzer: "SparkAnalyzer",
        context: DownstreamGraph,
        impact: Impact,
        start: SchemaPair | None,
        *,
        scripts: _ParsedScripts | None = None,
    ) -> None:
        self._analyzer = analyzer
        self._graph = context
        self._impact = impact
        self._scripts = scripts or _ParsedScripts()
        self._pairs: dict[str, SchemaPair | None] = {impact.urn: start}
        self._tables: dict[int, tuple[Schema, str]] = {}

    def reports(
        self, progress: Progress = no_progress
    ) -> Iterator[tuple[str, tuple[SparkCheckReport, ...]]]:
        """Reports on each dataset, upstream datasets first."""
        ranks = RankedGraph(self._impact.urn, self._graph.links(self._impact.urn)).rank
        datasets = sorted(self._impact.downstream, key=lambda each: ranks.get(each.urn, 0))
        for number, dataset in enumerate(datasets, 1):
            yield dataset.urn, tuple(self._check_dataset(dataset))
            share = number / len(datasets)
            progress("", files=number, share=share, unit="datasets")

    def _check_dataset(self, dataset: DatasetImpact) -> Iterator[SparkCheckReport]:
        derivations = [
            each for each in self._graph.derivations(dataset.urn) if each.sql is not None
        ]
        results: list[_ResultSchemas] = []
        if not derivations:
            text = "no SQL is stored for the dataset"
            yield SparkCheckReport(file=None, line=None, dialect=None, state="cannot", error=text)
        is_complete = bool(derivations)
        for derivation in derivations:
            assert derivation.sql is not None
            script = self._scripts.of(derivation.sql, derivation.dialect)
            first_lines = sorted({each.line for each in script.checks if each.line is not None})
            for checks in self._statements(derivation, dataset.urn):
                outcomes = [self._outcome(each, derivation, dataset.urn) for each in checks]
                worst = min(outcomes, key=lambda each: _SEVERITY_ORDER[each.state])
                is_complete = is_complete and worst.state == "ok"
                results += [each.results for each in outcomes if each.results is not None]
                line = checks[0].line
                verdict = _verdict_on(dataset, derivation.file, _lines(line, first_lines))
                yield SparkCheckReport(
                    file=derivation.file,
                    line=line,
                    dialect=derivation.dialect,
                    state=worst.state,
                    error=worst.error,
                    agrees=_is_consistent(worst.state, verdict),
                )
        self._pairs[dataset.urn] = self._resulting_schemas(
            dataset, results, is_complete=is_complete
        )

    def _statements(self, derivation: DatasetDerivation, urn: str) -> "list[list[StatementCheck]]":
        """The checks of each statement that writes a dataset, or one check with a problem."""
        from lumos.impact.spark_statements import StatementCheck

        assert derivation.sql is not None
        script = self._scripts.of(derivation.sql, derivation.dialect)
        by_statement: dict[int, list[StatementCheck]] = {}
        for check in script.checks:
            if _urn_of(check.target, derivation) == urn:
                by_statement.setdefault(check.statement, []).append(check)
        if by_statement:
            return [*by_statement.values()]
        line, text = (*script.problems, (None, "no statement of the script writes the dataset"))[0]
        return [[StatementCheck(target=(), statement=0, line=line, problem=text)]]

    def _outcome(
        self, check: "StatementCheck", derivation: DatasetDerivation, urn: str
    ) -> _Outcome:
        if check.problem is not None:
            return _Outcome("cannot", check.problem)
        try:
            pairs = {
                parts: self._schemas_of_table(parts, derivation) for parts in check.reads.values()
            }
            target = self._store_target(check, urn)
        except CheckNotPossible as problem:
            return _Outcome("cannot", str(problem))
        present = self._analyse(
            check, {parts: pair.present for parts, pair in pairs.items()}, target
        )
        if isinstance(present, str) and target is not None:
            # Other systems cast values to the column type where Spark does not.
            present, target = self._analyse(check, {k: v.present for k, v in pairs.items()}), None
        if isinstance(present, str):
            return _Outcome("cannot", present)
        proposed: Schema | str = present
        if not all(pair.is_unchanged for pair in pairs.values()):
            proposed = self._analyse(check, {k: v.proposed for k, v in pairs.items()}, target)
        if isinstance(proposed, str):
            return _Outcome("fails", proposed)
        return _Outcome("ok", None, (present, proposed) if check.creates else None)

    def _analyse(
        self,
        check: "StatementCheck",
        tables: Mapping[_Parts, Schema],
        target: "StoreTarget | None" = None,
    ) -> Schema | str:
        """The result schema of the query of a check, or the error of Spark."""
        from lumos.impact.job import SparkRejection

        sql = check.sql(lambda parts: self._table(tables[parts]))
        columns = check.columns if check.creates else ()
        answer = self._analyzer.analyse(sql, columns=columns, target=target)
        return answer.text if isinstance(answer, SparkRejection) else from_spark_schema(answer)

    def _table(self, schema: Schema) -> str:
        if id(schema) not in self._tables:
            self._tables[id(schema)] = schema, self._analyzer.table(to_spark_schema(schema))
        return self._tables[id(schema)][1]

    def _schemas_of_table(self, parts: _Parts, derivation: DatasetDerivation) -> SchemaPair:
        urn = _urn_of(parts, derivation)
        name = ".".join(parts)
        if urn is None:
            raise CheckNotPossible(f"no dataset is known for table {name}")
        pair = self._schema_pair(urn)
        if pair is None:
            raise CheckNotPossible(f"the schema of {name} is unknown")
        return pair

    def _schema_pair(self, urn: str) -> SchemaPair | None:
        """The schemas of a dataset before and after the change."""
        if urn not in self._pairs:
            # Ends the recursion if the dataset is part of a cycle.
            self._pairs[urn] = None
            schema = self._graph.schema(urn) or self._schema_from_sql(urn)
            self._pairs[urn] = None if schema is None else SchemaPair(schema, schema)
        return self._pairs[urn]

    def _schema_from_sql(self, urn: str) -> Schema | None:
        """The schema of a dataset without a stored one, from its own SQL."""
        for derivation in self._graph.derivations(urn):
            if derivation.sql is None:
                continue
            for checks in self._statements(derivation, urn):
                for check in checks:
                    results = self._outcome(check, derivation, urn).results
                    if results is not None:
                        return results[0]
            inferred = self._infer_schema(derivation, urn)
            if inferred is not None:
                return inferred
        return None

    def _infer_schema(self, derivation: DatasetDerivation, urn: str) -> Schema | None:
        """The schema that the SQL analysis infers, if Spark returned none."""

        def versions_of(table: str) -> TableVersions:
            pair = self._schema_pair(table)
            return TableVersions.of(table, None if pair is None else pair.present)

        for effect in analyse_derivation(derivation, urn, versions_of, with_fields=True):
            if effect.fields and effect.creates and not effect.may_write_other_columns:
                return Schema(fields=effect.fields)
        return None

    def _store_target(self, check: "StatementCheck", urn: str) -> "StoreTarget | None":
        """The columns of an existing table that the statement fills."""
        from lumos.impact.job import StoreTarget

        schema = None if check.creates or not check.stores else self._graph.schema(urn)
        if schema is None:
            return None
        if check.is_by_name:
            fields: Sequence[Field] = schema.fields
        else:
            fields = _filled_columns(schema, check)
        if not all(is_fully_known(field.type) for field in fields):
            return None
        return StoreTarget(
            to_spark_schema(Schema(fields=tuple(fields))),
            is_by_name=check.is_by_name,
            needs_all_columns=check.needs_all_columns,
        )

    def _resulting_schemas(
        self, dataset: DatasetImpact, results: Sequence[_ResultSchemas], *, is_complete: bool
    ) -> SchemaPair | None:
        """The schemas of a dataset after its checks, from Spark or else from the SQL analysis."""
        stored = self._graph.schema(dataset.urn)
        if stored is None:
            stored = results[0][0] if results else self._schema_from_sql(dataset.urn)
        if stored is None:
            return None
        if not is_complete:
            return SchemaPair(
                stored, apply_column_impacts(stored, dataset.columns) if dataset.columns else stored
            )
        after = stored
        for present, proposed in results:
            if present != proposed:
                after = apply_result_changes(after, present, proposed)
        return SchemaPair(stored, after)


_SEVERITY_ORDER: Mapping[CheckState, int] = {"fails": 0, "cannot": 1, "ok": 2}


def _filled_columns(schema: Schema, check: "StatementCheck") -> list[Field]:
    """The target columns, in the order of the result columns."""
    fields = {field.name.casefold(): field for field in schema.fields}
    names = [name.casefold() for name in check.columns]
    if not names:
        last_names = [name.casefold() for name in check.dynamic_partitions]
        partition_names = {*last_names, *(name.casefold() for name in check.static_partitions)}
        names = [*(name for name in fields if name not in partition_names), *last_names]
    for name in names:
        if name not in fields:
            raise CheckNotPossible(f"{'.'.join(check.target)} has no known column {name}")
    return [fields[name] for name in names]


def _urn_of(parts: _Parts, derivation: DatasetDerivation) -> str | None:
    exact = dict(derivation.tables)
    if parts in exact:
        return exact[parts]
    folded = tuple(part.casefold() for part in parts)
    return next(
        (urn for each, urn in derivation.tables if tuple(map(str.casefold, each)) == folded), None
    )


def _lines(line: int | None, first_lines: Sequence[int]) -> range:
    """The lines from a statement to the next one; the first statement starts at line 0."""
    if line is None:
        return range(sys.maxsize)
    is_first = line <= min(first_lines, default=line)
    end = next((begin for begin in first_lines if begin > line), sys.maxsize)
    return range(0 if is_first else line, end)


def _verdict_on(dataset: DatasetImpact, file: str | None, lines: range) -> Verdict:
    """The verdict on a dataset; compatible if only other statements break it."""
    breaking = [each for each in dataset.reasons if each.verdict is Verdict.BREAKING]
    is_elsewhere = bool(breaking) and all(
        each.line is not None and (each.file != file or each.line not in lines) for each in breaking
    )
    return Verdict.COMPATIBLE if is_elsewhere else dataset.verdict


def _is_consistent(state: CheckState, verdict: Verdict) -> bool:
    if state == "fails":
        return verdict in (Verdict.BREAKING, Verdict.UNDETERMINED)
    return state == "cannot" or verdict is not Verdict.BREAKING


def to_spark_schema(schema: Schema) -> dict[str, Any]:
    """Convert a schema to Spark; unknown types become NULL, which matches any type."""
    return schema_to_spark(
        Schema(
            fields=tuple(
                Field(
                    name=field.name,
                    type=NULL if isinstance(field.type, Unknown) else field.type,
                    nullable=field.nullable or isinstance(field.type, Unknown),
                )
                for field in schema.fields
            )
        )
    )


def from_spark_schema(schema: Mapping[str, Any]) -> Schema:
    """Convert the schema of a Spark result; NULL becomes unknown again."""
    return Schema(
        fields=tuple(
            Field(
                name=field.name,
                type=UNKNOWN if field.type == NULL else field.type,
                nullable=field.nullable,
            )
            for field in schema_from_spark(dict(schema)).fields
        )
    )


def is_fully_known(type: DataType) -> bool:
    """Whether a type and all nested types are known."""
    match type:
        case Unknown():
            return False
        case Array(element):
            return is_fully_known(element)
        case Map(key, value):
            return is_fully_known(key) and is_fully_known(value)
        case Struct(members):
            return all(is_fully_known(member.type) for member in members)
        case _:
            return True


def apply_result_changes(stored: Schema, before: Schema, after: Schema) -> Schema:
    """Apply the differences between the results of a query to the stored schema."""
    old, new = _by_name(before.fields), _by_name(after.fields)
    stored_fields = _by_name(stored.fields)
    fields = [_changed_field(field, old.get(name), new.get(name))
              for name, field in stored_fields.items()
              if name not in old or name in new]  # fmt: skip
    added_fields = [
        field for name, field in new.items() if name not in old and name not in stored_fields
    ]
    if list(stored_fields) != list(old):
        return Schema(fields=(*fields, *added_fields))
    by_name = _by_name([*fields, *added_fields])
    return Schema(fields=tuple(by_name[name] for name in new))


def apply_column_impacts(stored: Schema, columns: Iterable[ColumnImpact]) -> Schema:
    """Apply the column changes that the SQL analysis found to the stored schema."""
    fields = _by_name(stored.fields)
    for column in columns:
        name = column.name.casefold()
        if column.after is None:
            fields.pop(name, None)
            continue
        field = fields.get(name) or Field(name=column.name, type=UNKNOWN)
        nullable = field.nullable if column.after.nullable is None else column.after.nullable
        fields[name] = msgspec.structs.replace(
            field, type=column.after.type, nullable=nullable, native_type=None
        )
    return Schema(fields=tuple(fields.values()))


def _changed_field(field: Field, before: Field | None, after: Field | None) -> Field:
    if before is None or after is None:
        return field
    type = after.type if after.type != before.type else field.type
    nullable = after.nullable if after.nullable != before.nullable else field.nullable
    if (type, nullable) == (field.type, field.nullable):
        return field
    return msgspec.structs.replace(field, type=type, nullable=nullable, native_type=None)


def _by_name(fields: Sequence[Field]) -> dict[str, Field]:
    return {field.name.casefold(): field for field in fields}
