"""Reads input files of every kind into reported lineage."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lumos.config.sql_names import NameTemplate
from lumos.config.yaml_tree import ConfigurationError
from lumos.errors import LumosError
from lumos.lineage import dbt, declared, metabase, openlineage, sql_files, superset
from lumos.lineage.consumers import (
    Consumer,
    ConsumerExport,
    consumer_table,
    join_lineage,
    with_consumers,
)
from lumos.lineage.dbt import DbtRelations, UnreadableManifest
from lumos.lineage.input_files import InputFile, InputFiles, InputKind
from lumos.lineage.name_index import NameIndex
from lumos.lineage.openlineage import OpenLineageEvent
from lumos.lineage.reported_lineage import LineageProblem, ReportedLineage, TableName
from lumos.lineage.resolver import ColumnLookup, SchemaCache
from lumos.lineage.sql import ScriptLineage, SqlText, TableWrite, analyse, report_script
from lumos.lineage.sql.dialects import dotted
from lumos.lineage.sql.script import ALL
from lumos.lineage.sql_files import ModelName, SqlFile, UnreadableSql, tables_in_from
from lumos.progress import Progress

# How many times scripts are analysed, since a script may read tables that another one creates.
_MAX_ROUNDS: Final = 4


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of one file, and the dialect of its names.

    `model` is the table that a file with a single query creates, `defines` are all tables and views
    that the file creates from queries.
    """

    lineage: ReportedLineage
    file: str = ""
    dialect: str | None = None
    model: str | None = None
    defines: tuple[TableName, ...] = ()


class FailedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be read; its earlier lineage stays."""

    name: str
    problems: tuple[LineageProblem, ...]


class FileProblems(msgspec.Struct, frozen=True, kw_only=True):
    """Problems in a file whose other parts were read."""

    problems: tuple[LineageProblem, ...]


ReadResult: TypeAlias = FileReport | FailedFile | FileProblems
# Loads the encoded events that reporters stored in earlier runs, by reporter.
LoadStoredEvents: TypeAlias = Callable[[Collection[str]], Mapping[str, bytes]]


class FileReader:
    """Reads all input files, kind by kind."""

    def __init__(
        self,
        names: NameIndex,
        schemas: SchemaCache,
        *,
        load_stored_events: LoadStoredEvents,
        dialect: str | None,
        name_from: NameTemplate | None,
        progress: Progress,
    ) -> None:
        self._load_stored_events = load_stored_events
        self._names = names
        self._schemas = schemas
        self._dialect = dialect
        self._name_from = name_from
        self._progress = progress

    def read(self, inputs: InputFiles) -> Iterator[ReadResult]:
        """Read all files; kinds that define many table names come first."""
        yield from self._read_openlineage(inputs.of_kind(InputKind.OPENLINEAGE))
        for file in inputs.of_kind(InputKind.DBT):
            yield self._read_dbt(file)
        yield from self._read_sql(inputs.of_kind(InputKind.SQL))
        for file in inputs.of_kind(InputKind.DECLARED):
            yield self._read_declarations(file)
        for file in inputs.of_kind(InputKind.EXPOSURES):
            yield self._read_export(file, dbt.report_exposures)
        for file in inputs.of_kind(InputKind.SUPERSET):
            yield self._read_export(file, superset.report_export)
        yield from self._read_metabase(inputs.of_kind(InputKind.METABASE))

    def _read_declarations(self, file: InputFile) -> FileReport | FailedFile:
        try:
            lineage = declared.report_declarations(file.file, name=file.name)
            return FileReport(lineage=lineage, file=file.name, dialect=self._dialect)
        except ConfigurationError as error:
            problems = (
                LineageProblem(place=file.name, line=each.position.line, reason=each.text)
                for each in error.problems
            )
            return FailedFile(name=file.name, problems=tuple(problems))

    def _read_metabase(self, files: Sequence[InputFile]) -> Iterator[FileReport | FailedFile]:
        """Read JSON files one by one, and serialized files by export."""
        exports: dict[str, list[InputFile]] = {}
        for file in files:
            if file.file.suffix.lower() == ".json":
                yield self._read_export(file, metabase.report_json)
            else:
                exports.setdefault(metabase.export_root(file.name), []).append(file)
        for root, export_files in exports.items():
            export = metabase.report_files(
                [(each.file, each.name) for each in export_files], root=root
            )
            yield self._report_consumers(export, root)

    def _read_export(
        self, file: InputFile, report: Callable[..., ConsumerExport]
    ) -> FileReport | FailedFile:
        try:
            return self._report_consumers(report(file.file, name=file.name), file.name)
        except ConfigurationError as error:
            problems = tuple(
                LineageProblem(place=file.name, line=each.position.line, reason=each.text)
                for each in error.problems
            )
        except (LumosError, OSError) as problem:
            problems = (LineageProblem(place=file.name, reason=str(problem)),)
        return FailedFile(name=file.name, problems=problems)

    def _report_consumers(self, export: ConsumerExport, file: str) -> FileReport | FailedFile:
        if not export.consumers and export.problems:
            return FailedFile(name=file, problems=export.problems)
        sql_lineages = self._analyse_consumers(export.consumers, export.reporter)
        lineage = join_lineage(
            export.reporter,
            export.consumers,
            sql_lineages,
            (*export.problems, *self._unknown_engines(export)),
        )
        return FileReport(lineage=lineage, file=file, dialect=self._dialect)

    def _analyse_consumers(
        self,
        consumers: Sequence[Consumer],
        reporter: str,
        declared: Mapping[tuple[str, ...], Mapping[str, str]] | None = None,
    ) -> list[ReportedLineage]:
        """The lineage of the SQL of consumers, which may read each other."""
        tables = {consumer_table(each.entity.urn): each.reference for each in consumers}
        by_engine: dict[tuple[str | None, str | None], dict[str, Consumer]] = {}
        for each in consumers:
            if each.sql is not None:
                group = by_engine.setdefault((each.dialect or self._dialect, each.platform), {})
                group[each.entity.urn] = each
        sql_lineages: list[ReportedLineage] = []
        for (dialect, platform), by_urn in by_engine.items():
            columns = ColumnLookup(
                self._names, self._schemas, dialect=dialect, platform=platform, declared=declared
            )
            texts = {
                urn: SqlText(each.statement, each.file, dialect) for urn, each in by_urn.items()
            }
            for urn, script in self._analyse_all(texts, columns, f"Reading {reporter}"):
                lineage = report_script(
                    script, reporter=reporter, platform=platform, text=texts[urn]
                )
                sql_lineages.append(with_consumers(lineage, by_urn[urn], tables))
        return sql_lineages

    def _unknown_engines(self, export: ConsumerExport) -> Iterator[LineageProblem]:
        """A remark for each database engine without a known SQL dialect."""
        engines = {
            each.engine
            for each in export.consumers
            if each.sql is not None and each.engine is not None and each.dialect is None
        }
        for engine in sorted(engines):
            assumed = self._dialect or "standard SQL"
            reason = f"'{engine}' is not a known SQL dialect. {assumed} is assumed; see --dialect."
            yield LineageProblem(place=export.reporter, reason=reason, severity="remark")

    def _read_openlineage(self, files: Sequence[InputFile]) -> Iterator[ReadResult]:
        """Read the events of all files together: those of one run may be in several files."""
        events: list[OpenLineageEvent] = []
        for number, file in enumerate(files):
            self._progress("Reading events", files=number, share=number / len(files))
            problems = []
            count_before = len(events)
            for each in openlineage.read_events(file.file, name=file.name):
                if isinstance(each, LineageProblem):
                    problems.append(each)
                else:
                    events.append(each)
            if problems and len(events) == count_before:
                yield FailedFile(name=file.name, problems=tuple(problems))
            elif problems:
                yield FileProblems(problems=tuple(problems))
        for report in openlineage.report_events(events, self._load_stored_events):
            yield FileReport(lineage=report)

    def _read_dbt(self, file: InputFile) -> FileReport | FailedFile:
        try:
            project = dbt.read_project(file.file, name=file.name)
        except UnreadableManifest as error:
            return FailedFile(
                name=file.name, problems=(LineageProblem(place=file.name, reason=str(error)),)
            )
        relations = DbtRelations(project)
        dialect = relations.dialect_name or self._dialect
        columns = ColumnLookup(
            self._names,
            self._schemas,
            dialect=dialect,
            platform=relations.platform,
            declared=relations.columns(),
        )
        models = {each.key: each for each in dbt.model_queries(project, relations)}
        texts = {key: SqlText(each.text, each.file, dialect) for key, each in models.items()}
        lineages = {
            key: report_script(
                script,
                reporter=f"dbt:{project.name}",
                platform=relations.platform,
                text=texts[key],
            )
            for key, script in self._analyse_all(texts, columns, f"Reading {file.name}")
        }
        lineage = dbt.report_project(project, lineages)
        target = file.file.absolute().parent
        consumers = tuple(dbt.project_consumers(project, relations, folder=target.parent))
        sql_lineages = self._analyse_consumers(consumers, lineage.reporter, relations.columns())
        consumer_lineage = join_lineage(lineage.reporter, consumers, sql_lineages)
        return FileReport(
            lineage=msgspec.structs.replace(
                lineage,
                edges=(*lineage.edges, *consumer_lineage.edges),
                scripts=(*lineage.scripts, *consumer_lineage.scripts),
                unparsed=(*lineage.unparsed, *consumer_lineage.unparsed),
                consumers=consumer_lineage.consumers,
                problems=(*lineage.problems, *consumer_lineage.problems),
                coverage=lineage.coverage + consumer_lineage.coverage,
            ),
            dialect=dialect,
        )

    def _read_sql(self, files: Sequence[InputFile]) -> Iterator[FileReport | FailedFile]:
        sql_by_name: dict[str, SqlFile] = {}
        projects = sql_files.ProjectMacros()
        macros = {file.name: projects.of(file.file) for file in files}
        for file in files:
            try:
                sql_by_name[file.name] = sql_files.read_sql(
                    file.file, name=file.name, macros=macros[file.name]
                )
            except UnreadableSql as error:
                problem = LineageProblem(place=file.name, reason=str(error))
                yield FailedFile(name=file.name, problems=(problem,))
        create_statements = {
            name: sql_files.create_statement(file, self._dialect)
            for name, file in sql_by_name.items()
        }
        model_names = {
            name: sql_files.model_name(name, self._name_from)
            for name, statement in create_statements.items()
            if statement is not None
        }
        for name, table in self._model_tables(model_names, sql_by_name).items():
            sql_file = sql_by_name[name]
            if table != sql_file.table:
                sql_file = sql_files.parse_sql_file(
                    sql_file.text, name=name, table=table, macros=macros[name]
                )
                create_statements[name] = sql_files.create_statement(sql_file, self._dialect)
                sql_by_name[name] = sql_file
        tables = {name for file in sql_by_name.values() for name in tables_in_from(file.sql)}
        self._schemas.load(filter(None, map(self._find_urn, tables)))
        columns = ColumnLookup(self._names, self._schemas, dialect=self._dialect)
        texts = {
            name: SqlText(create_statements[name] or file.sql, name, self._dialect)
            for name, file in sql_by_name.items()
        }
        for name, script in self._analyse_all(texts, columns, "Reading SQL"):
            yield FileReport(
                lineage=sql_files.report_sql_file(sql_by_name[name], script, text=texts[name]),
                file=name,
                dialect=self._dialect,
                model=dotted(model_names[name].name) if name in model_names else None,
                defines=tuple(TableName(parts=write.table) for write in _definitions(script)),
            )

    def _model_tables(
        self, model_names: Mapping[str, ModelName], sql_by_name: Mapping[str, SqlFile]
    ) -> dict[str, tuple[str, ...]]:
        """The table that each file with a single query creates.

        If a rule of the configuration applies to its name, the rule decides. Otherwise it is the
        dataset of that name, if there is one, or a new table named after the path of the file.
        """
        tables: dict[str, tuple[str, ...]] = {}
        datasets: dict[str, str | None] = {}
        for file, model in model_names.items():
            if self._names.has_rule(TableName(parts=model.name), dialect=self._dialect):
                tables[file] = model.name
                continue
            tables[file], datasets[file] = model.path, None
            sources = {self._find_urn(each) for each in tables_in_from(sql_by_name[file].sql)}
            for name in model.possible_names:
                urn = self._find_urn(name)
                # A query on raw.orders in orders.sql does not create raw.orders.
                if urn is not None and (name == model.path or urn not in sources):
                    tables[file], datasets[file] = name, urn
                    break
        for file, dataset in datasets.items():
            path = model_names[file].path
            self._names.add_model(path, file, dialect=self._dialect, dataset=dataset)
        return tables

    def _find_urn(self, table: tuple[str, ...]) -> str | None:
        urn = self._names.find(TableName(parts=table), dialect=self._dialect).urn
        return urn if urn in self._names else None

    def _analyse_all(
        self, texts: Mapping[str, SqlText], columns: ColumnLookup, step: str
    ) -> Iterator[tuple[str, ScriptLineage]]:
        """Analyse all texts; a script may read tables that others create.

        A script is returned as soon as it is final, since the lineage of all files together needs
        much memory. It is not final while the columns of a table that it reads are unknown.
        """
        waiting: dict[str, ScriptLineage] = {}
        pending = sort_by_dependency({key: each.text for key, each in texts.items()})
        self._progress(step)
        for _ in range(_MAX_ROUNDS):
            outdated: set[tuple[str, ...]] = set()
            for number, key in enumerate(pending):
                text, file, dialect = texts[key]
                unknown_before = columns.unknown
                script = analyse(
                    text,
                    dialect=dialect,
                    columns=columns,
                    file=file,
                    progress=self._file_progress(step, number, len(pending)),
                )
                outdated |= columns.add_created(_complete_columns(script))
                if columns.unknown > unknown_before:
                    waiting[key] = script
                else:
                    waiting.pop(key, None)
                    yield key, script
            pending = [
                key
                for key, script in waiting.items()
                if any(read.table in outdated for read in script.reads)
            ]
            if not pending:
                break
        yield from waiting.items()

    def _file_progress(self, step: str, number: int, files: int) -> Callable[[float], None]:
        """A callback that converts the progress of one file to the progress of all files."""
        return lambda share: self._progress(step, files=number, share=(number + share) / files)


def _definitions(script: ScriptLineage) -> Iterator[TableWrite]:
    """The tables and views that a script creates from queries."""
    for statement in script.statements:
        for write in statement.writes:
            if write.is_view or statement.kind in ("CREATE_TABLE", "SELECT_INTO"):
                yield write


def _complete_columns(script: ScriptLineage) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The columns of the tables that a script fills completely, if all are known."""
    return {
        write.table: write.columns
        for statement in script.statements
        for write in statement.writes
        if write.covers_all_columns and write.columns and ALL not in write.columns
    }


_WORD: Final = re.compile(r"\w+")
_CREATED_TABLE: Final = re.compile(
    r"\b(?:table|view|into|overwrite|merge)\s+(?:if\s+not\s+exists\s+)?([\w.\"`\[\]$-]+)",
    re.IGNORECASE,
)


def sort_by_dependency(texts: Mapping[str, str]) -> list[str]:
    """Sort the keys of SQL texts, so that a text that creates a table precedes those that read it.

    Regular expressions suffice, since scripts are analysed again if the order was wrong.
    """
    creators: dict[str, str] = {}
    for key, text in texts.items():
        for name in _CREATED_TABLE.findall(text):
            words = _WORD.findall(name.lower().rpartition(".")[2])
            if words:
                creators.setdefault(words[0], key)
    dependencies = {
        key: {creators[name] for name in creators.keys() & _WORD.findall(text.lower())} - {key}
        for key, text in texts.items()
    }
    # Depth first, so that a cycle only affects the order of its own texts.
    sorted_keys: list[str] = []
    visited: set[str] = set()
    for start in texts:
        path = [] if start in visited else [(start, iter(sorted(dependencies[start])))]
        visited.add(start)
        while path:
            key, remaining = path[-1]
            dependency = next((each for each in remaining if each not in visited), None)
            if dependency is None:
                sorted_keys.append(key)
                path.pop()
            else:
                visited.add(dependency)
                path.append((dependency, iter(sorted(dependencies[dependency]))))
    return sorted_keys
