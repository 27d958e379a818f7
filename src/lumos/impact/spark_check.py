"""Rehearsal: what Spark says of the SQL downstream, with the schemas of today and of tomorrow."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from lumos.config.settings import Settings
from lumos.impact.context import reason
from lumos.impact.rules import DatasetImpact, Downstream, Impact, Making
from lumos.impact.rules.ordering import Graph
from lumos.impact.rules.type_uses import TableVersions
from lumos.impact.spark_schemas import Pair, followed, from_stage, is_known, reckoned, to_stage
from lumos.model.change import Verdict
from lumos.model.report import Report
from lumos.model.schema import Field, Schema
from lumos.progress import Progress, no_progress

if TYPE_CHECKING:
    from lumos.impact.job import Stage, Storing
    from lumos.impact.spark_queries import Check, Checks

State = Literal["ok", "fails", "cannot"]
_Parts = tuple[str, ...]
_Sides = tuple[Schema, Schema]


class RehearsalReport(Report, frozen=True, kw_only=True):
    """What Spark says of one statement: `fails` if only with the proposed schema.

    `error` is its error then, or why a statement cannot be rehearsed. `agrees` is whether that goes
    with what reasoning says of the statement; what cannot be rehearsed contradicts nothing.
    """

    file: str | None
    line: int | None
    dialect: str | None
    state: State
    error: str | None = None
    agrees: bool = True


class CannotRehearse(Exception):
    """A statement that Spark cannot be asked about."""


def rehearse(
    settings: Settings, world: Downstream, impact: Impact, present: Schema | None,
    proposed: Schema | None, progress: Progress,
) -> dict[str, tuple[RehearsalReport, ...]]:  # fmt: skip
    """What Spark says of each dataset downstream, by its URN; a report for each statement.

    Tables are empty there: nothing is read, nothing is run, and nothing is left in the session.
    """
    from lumos.impact.job import stage_on

    scripts = _Scripts()
    texts = [
        (making.sql, making.dialect)
        for dataset in impact.downstream
        for making in world.makings(dataset.urn)
        if making.sql is not None
    ]
    spark = settings.spark
    progress("starting Spark")
    with stage_on(
        master=spark.master,
        settings=spark.properties(),
        # The texts are read while Spark starts.
        meanwhile=lambda: scripts.read(texts),
    ) as empty:
        progress("rehearsing")
        start = None if present is None or proposed is None else Pair(present, proposed)
        rehearsal = Rehearsal(empty, world, impact, start, scripts=scripts)
        return dict(rehearsal.reports(progress))


class _Scripts:
    """The checks of texts, each text read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], Checks] = {}

    def read(self, texts: Iterable[tuple[str, str | None]]) -> None:
        """Reads texts before anybody asks for them."""
        for sql, dialect in texts:
            self.of(sql, dialect)

    def of(self, sql: str, dialect: str | None) -> "Checks":
        from lumos.impact.spark_queries import checks

        if (sql, dialect) not in self._known:
            self._known[sql, dialect] = checks(sql, dialect=dialect)
        return self._known[sql, dialect]


class _Outcome(NamedTuple):
    """What became of a check; the results are there where Spark gave some."""

    state: State
    error: str | None = None
    results: _Sides | None = None


class Rehearsal:
    """Goes down the stream; behind a dataset that changes, its new schema is rehearsed with."""

    def __init__(
        self, stage: "Stage", world: Downstream, impact: Impact, start: Pair | None,
        *, scripts: _Scripts | None = None,
    ) -> None:  # fmt: skip
        self._stage = stage
        self._world = world
        self._impact = impact
        self._scripts = scripts or _Scripts()
        self._pairs: dict[str, Pair | None] = {impact.urn: start}
        self._tables: dict[int, tuple[Schema, str]] = {}

    def reports(
        self, progress: Progress = no_progress
    ) -> Iterator[tuple[str, tuple[RehearsalReport, ...]]]:
        """What Spark says of each dataset, makers first."""
        ranks = Graph(self._impact.urn, self._world.links(self._impact.urn)).rank
        datasets = sorted(self._impact.downstream, key=lambda each: ranks.get(each.urn, 0))
        for number, dataset in enumerate(datasets, 1):
            yield dataset.urn, tuple(self._dataset(dataset))
            share = number / len(datasets)
            progress("", files=number, share=share, unit="datasets")

    def _dataset(self, dataset: DatasetImpact) -> Iterator[RehearsalReport]:
        makings = [each for each in self._world.makings(dataset.urn) if each.sql is not None]
        results: list[_Sides] = []
        if not makings:
            text = "no SQL that makes it is kept"
            yield RehearsalReport(file=None, line=None, dialect=None, state="cannot", error=text)
        is_complete = bool(makings)
        for making in makings:
            begins = self._begins(making)
            for checks in self._statements(making, dataset.urn):
                outcomes = [self._outcome(each, making, dataset.urn) for each in checks]
                worst = min(outcomes, key=lambda each: _ORDER[each.state])
                is_complete = is_complete and worst.state == "ok"
                results += [each.results for each in outcomes if each.results is not None]
                line = checks[0].line
                verdict = _verdict_on(dataset, making.file, _lines(line, begins))
                yield RehearsalReport(
                    file=making.file,
                    line=line,
                    dialect=making.dialect,
                    state=worst.state,
                    error=worst.error,
                    agrees=_agree(worst.state, verdict),
                )
        self._pairs[dataset.urn] = self._next(dataset, results, is_complete=is_complete)

    def _begins(self, making: Making) -> list[int]:
        """The lines on which statements of a text begin that write something."""
        assert making.sql is not None
        found = self._scripts.of(making.sql, making.dialect).found
        return sorted({check.line for check in found if check.line is not None})

    def _statements(self, making: Making, urn: str) -> "list[list[Check]]":
        """The checks of each statement that makes a dataset, or one that says why there is none."""
        from lumos.impact.spark_queries import Check

        assert making.sql is not None
        read = self._scripts.of(making.sql, making.dialect)
        found: dict[int, list[Check]] = {}
        for check in read.found:
            if _urn_of(check.target, making) == urn:
                found.setdefault(check.statement, []).append(check)
        if found:
            return [*found.values()]
        line, text = (*read.problems, (None, "no statement in it makes the dataset"))[0]
        return [[Check(target=(), statement=0, line=line, problem=text)]]

    def _outcome(self, check: "Check", making: Making, urn: str) -> _Outcome:
        if check.problem is not None:
            return _Outcome("cannot", check.problem)
        try:
            pairs = {parts: self._read(parts, making) for parts in check.reads.values()}
            storing = self._storing(check, urn)
        except CannotRehearse as problem:
            return _Outcome("cannot", str(problem))
        now = self._asked(check, {parts: pair.present for parts, pair in pairs.items()}, storing)
        if isinstance(now, str) and storing is not None:
            # Other systems turn values into what a column takes, which Spark would not.
            now, storing = self._asked(check, {k: v.present for k, v in pairs.items()}), None
        if isinstance(now, str):
            return _Outcome("cannot", now)
        then: Schema | str = now
        if not all(pair.is_same for pair in pairs.values()):
            then = self._asked(check, {k: v.proposed for k, v in pairs.items()}, storing)
        if isinstance(then, str):
            return _Outcome("fails", then)
        return _Outcome("ok", None, (now, then) if check.creates else None)

    def _asked(
        self, check: "Check", tables: Mapping[_Parts, Schema], storing: "Storing | None" = None
    ) -> Schema | str:
        """The result of a check's query, or what Spark has against it."""
        from lumos.impact.job import Refusal

        sql = check.sql(lambda parts: self._table(tables[parts]))
        columns = check.columns if check.creates else ()
        answer = self._stage.analyse(sql, columns=columns, storing=storing)
        return answer.text if isinstance(answer, Refusal) else from_stage(answer)

    def _table(self, schema: Schema) -> str:
        if id(schema) not in self._tables:
            self._tables[id(schema)] = schema, self._stage.table(to_stage(schema))
        return self._tables[id(schema)][1]

    def _read(self, parts: _Parts, making: Making) -> Pair:
        urn = _urn_of(parts, making)
        name = ".".join(parts)
        if urn is None:
            raise CannotRehearse(f"no dataset is known for {name}, which it reads")
        pair = self._pair(urn)
        if pair is None:
            raise CannotRehearse(f"the schema of {name} is not known")
        return pair

    def _pair(self, urn: str) -> Pair | None:
        """A dataset on both sides; one that nobody changes is the same on both."""
        if urn not in self._pairs:
            # Whoever asks again on the way round a circle gets no answer.
            self._pairs[urn] = None
            schema = self._world.schema(urn) or self._result_of(urn)
            self._pairs[urn] = None if schema is None else Pair(schema, schema)
        return self._pairs[urn]

    def _result_of(self, urn: str) -> Schema | None:
        """The schema of a dataset that none is stored of: what its own SQL gives it."""
        for making in self._world.makings(urn):
            if making.sql is None:
                continue
            for checks in self._statements(making, urn):
                for check in checks:
                    results = self._outcome(check, making, urn).results
                    if results is not None:
                        return results[0]
            inferred = self._inferred(making, urn)
            if inferred is not None:
                return inferred
        return None

    def _inferred(self, making: Making, urn: str) -> Schema | None:
        """The columns that reasoning finds where Spark finds none."""

        def versions(table: str) -> TableVersions:
            pair = self._pair(table)
            return TableVersions.of(table, None if pair is None else pair.present)

        for effect in reason(making, urn, versions, with_fields=True):
            if effect.fields and effect.creates and not effect.is_open:
                return Schema(fields=effect.fields)
        return None

    def _storing(self, check: "Check", urn: str) -> "Storing | None":
        """The columns of a table that keeps its types, as far as the statement fills them."""
        from lumos.impact.job import Storing

        schema = None if check.creates or not check.stores else self._world.schema(urn)
        if schema is None:
            return None
        if check.is_by_name:
            fields: Sequence[Field] = schema.fields
        else:
            fields = _filled(schema, check)
        if not all(is_known(field.type) for field in fields):
            return None
        return Storing(
            to_stage(Schema(fields=tuple(fields))),
            is_by_name=check.is_by_name,
            needs_all=check.gives_all,
        )

    def _next(
        self, dataset: DatasetImpact, results: Sequence[_Sides], *, is_complete: bool
    ) -> Pair | None:
        """What a dataset becomes: as Spark says, or else as reasoning does."""
        stored = self._world.schema(dataset.urn)
        if stored is None:
            stored = results[0][0] if results else self._result_of(dataset.urn)
        if stored is None:
            return None
        if not is_complete:
            return Pair(stored, reckoned(stored, dataset.columns) if dataset.columns else stored)
        after = stored
        for now, then in results:
            if now != then:
                after = followed(after, now, then)
        return Pair(stored, after)


_ORDER: Mapping[State, int] = {"fails": 0, "cannot": 1, "ok": 2}


def _filled(schema: Schema, check: "Check") -> list[Field]:
    """The columns that take a result, in the order of its columns."""
    known = {field.name.casefold(): field for field in schema.fields}
    names = [name.casefold() for name in check.columns]
    if not names:
        last = [name.casefold() for name in check.last]
        others = {*last, *(name.casefold() for name in check.fixed)}
        names = [*(name for name in known if name not in others), *last]
    for name in names:
        if name not in known:
            raise CannotRehearse(f"{'.'.join(check.target)} is not known to have a column {name}")
    return [known[name] for name in names]


def _urn_of(parts: _Parts, making: Making) -> str | None:
    exact = dict(making.tables)
    if parts in exact:
        return exact[parts]
    folded = tuple(part.casefold() for part in parts)
    return next(
        (urn for each, urn in making.tables if tuple(map(str.casefold, each)) == folded), None
    )


def _lines(line: int | None, begins: Sequence[int]) -> range:
    """The lines of a statement: up to the next one, and the first one's from the top."""
    if line is None:
        return range(sys.maxsize)
    is_first = line <= min(begins, default=line)
    end = next((begin for begin in begins if begin > line), sys.maxsize)
    return range(0 if is_first else line, end)


def _verdict_on(dataset: DatasetImpact, file: str | None, lines: range) -> Verdict:
    """The verdict on a dataset, unless all that breaks it stands in other statements than this."""
    breaking = [each for each in dataset.reasons if each.verdict is Verdict.BREAKING]
    is_elsewhere = bool(breaking) and all(
        each.line is not None and (each.file != file or each.line not in lines) for each in breaking
    )
    return Verdict.COMPATIBLE if is_elsewhere else dataset.verdict


def _agree(state: State, verdict: Verdict) -> bool:
    if state == "fails":
        return verdict in (Verdict.BREAKING, Verdict.UNDETERMINED)
    return state == "cannot" or verdict is not Verdict.BREAKING
