"""Reads input files of every kind into reported lineage."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lumos.config.sql_names import NameTemplate
from lumos.config.yaml_tree import ConfigurationError
from lumos.lineage import dbt, declared, openlineage, sql_files
from lumos.lineage.dbt import DbtRelations, UnreadableManifest
from lumos.lineage.input_files import InputFile, InputFiles, InputKind
from lumos.lineage.name_index import NameIndex
from lumos.lineage.openlineage import OpenLineageEvent
from lumos.lineage.reported_lineage import LineageProblem, ReportedLineage, TableName
from lumos.lineage.resolver import ColumnLookup, SchemaCache
from lumos.lineage.sql import ScriptLineage, SqlText, TableWrite, analyse, report_script
from lumos.lineage.sql.dialects import dotted
from lumos.lineage.sql.script import ALL
from lumos.lineage.sql_files import ModelName, SqlFile, UnreadableSql
from lumos.progress import Progress

# Scripts are analysed again once the columns of the tables they read are known.
_MAX_ROUNDS: Final = 4


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of one file and the dialect of its names; `model` as in `ReporterReport`.

    `defines` lists the tables and views that the file creates from a query.
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
# Returns the stored memories of some reporters.
LoadMemories: TypeAlias = Callable[[Collection[str]], Mapping[str, bytes]]


class FileReader:
    """Reads the input files, one kind after the other."""

    def __init__(
        self,
        names: NameIndex,
        schemas: SchemaCache,
        *,
        load_memories: LoadMemories,
        dialect: str | None,
        name_from: NameTemplate | None,
        progress: Progress,
    ) -> None:
        self._load_memories = load_memories
        self._names = names
        self._schemas = schemas
        self._dialect = dialect
        self._name_from = name_from
        self._progress = progress

    def read(self, inputs: InputFiles) -> Iterator[ReadResult]:
        """Read all files; those that define the most names come first."""
        yield from self._openlineage(inputs.of(InputKind.OPENLINEAGE))
        for file in inputs.of(InputKind.DBT):
            yield self._dbt(file)
        yield from self._sql(inputs.of(InputKind.SQL))
        for file in inputs.of(InputKind.DECLARED):
            yield self._declared(file)

    def _declared(self, file: InputFile) -> FileReport | FailedFile:
        try:
            lineage = declared.report_declarations(file.file, name=file.name)
            return FileReport(lineage=lineage, file=file.name, dialect=self._dialect)
        except ConfigurationError as error:
            problems = (
                LineageProblem(place=file.name, line=each.position.line, reason=each.text)
                for each in error.problems
            )
            return FailedFile(name=file.name, problems=tuple(problems))

    def _openlineage(self, files: Sequence[InputFile]) -> Iterator[ReadResult]:
        """Read the events of all files together: a run may be spread over several."""
        events: list[OpenLineageEvent] = []
        for number, file in enumerate(files):
            self._progress("Reading events", files=number, share=number / len(files))
            problems = []
            found = len(events)
            for each in openlineage.read_events(file.file, name=file.name):
                if isinstance(each, LineageProblem):
                    problems.append(each)
                else:
                    events.append(each)
            if problems and len(events) == found:
                yield FailedFile(name=file.name, problems=tuple(problems))
            elif problems:
                yield FileProblems(problems=tuple(problems))
        for report in openlineage.report_events(events, self._load_memories):
            yield FileReport(lineage=report)

    def _dbt(self, file: InputFile) -> FileReport | FailedFile:
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
            known=relations.columns(),
        )
        models = {each.key: each for each in dbt.model_queries(project, relations)}
        texts = {key: SqlText(each.text, each.file, dialect) for key, each in models.items()}
        scripts = self._analyse_all(texts, columns, f"Reading {file.name}")
        lineages = {
            key: report_script(
                script,
                reporter=f"dbt:{project.name}",
                platform=relations.platform,
                text=texts[key],
            )
            for key, script in scripts.items()
        }
        return FileReport(lineage=dbt.report_project(project, lineages), dialect=dialect)

    def _sql(self, files: Sequence[InputFile]) -> Iterator[FileReport | FailedFile]:
        read: dict[str, SqlFile] = {}
        for file in files:
            try:
                read[file.name] = sql_files.read_sql(file.file, name=file.name)
            except UnreadableSql as error:
                problem = LineageProblem(place=file.name, reason=str(error))
                yield FailedFile(name=file.name, problems=(problem,))
        models = {
            name: sql_files.create_statement(file, self._dialect) for name, file in read.items()
        }
        named = {
            name: sql_files.model_name(name, self._name_from)
            for name, model in models.items()
            if model is not None
        }
        for name, table in self._model_tables(named, read).items():
            if table != read[name].table:
                read[name] = sql_files.parse_sql_file(read[name].text, name=name, table=table)
                models[name] = sql_files.create_statement(read[name], self._dialect)
        columns = ColumnLookup(self._names, self._schemas, dialect=self._dialect)
        texts = {
            name: SqlText(models[name] or file.sql, name, self._dialect)
            for name, file in read.items()
        }
        scripts = self._analyse_all(texts, columns, "Reading SQL")
        for name, script in scripts.items():
            sql_file = read[name]
            yield FileReport(
                lineage=sql_files.report_sql_file(sql_file, script, text=texts[name]),
                file=name,
                dialect=self._dialect,
                model=dotted(named[name].name) if name in named else None,
                defines=tuple(TableName(parts=write.table) for write in _definitions(script)),
            )

    def _model_tables(
        self, named: Mapping[str, ModelName], read: Mapping[str, SqlFile]
    ) -> dict[str, tuple[str, ...]]:
        """The table that each file with a single query creates.

        That is the dataset of that name, or the table that a rule of the configuration names.
        Otherwise the table is named after the path of the file.
        """
        tables: dict[str, tuple[str, ...]] = {}
        datasets: dict[str, str | None] = {}
        for file, model in named.items():
            if self._names.has_rule(TableName(parts=model.name), dialect=self._dialect):
                tables[file] = model.name
                continue
            tables[file], datasets[file] = model.path, None
            sources = {self._find_urn(each) for each in sql_files.tables_in_from(read[file].sql)}
            for spelling in model.spellings:
                found = self._find_urn(spelling)
                # A query on raw.orders in orders.sql does not create raw.orders.
                if found is not None and (spelling == model.path or found not in sources):
                    tables[file], datasets[file] = spelling, found
                    break
        for file, dataset in datasets.items():
            path = named[file].path
            self._names.add_model(path, file, dialect=self._dialect, dataset=dataset)
        return tables

    def _find_urn(self, table: tuple[str, ...]) -> str | None:
        found = self._names.find(TableName(parts=table), dialect=self._dialect)
        return found.urn if found.urn in self._names else None

    def _analyse_all(
        self, texts: Mapping[str, SqlText], columns: ColumnLookup, step: str
    ) -> dict[str, ScriptLineage]:
        """Analyse all texts; a script knows the columns of tables that others create."""
        scripts: dict[str, ScriptLineage] = {}
        waiting = sort_by_dependency({key: each.text for key, each in texts.items()})
        self._progress(step)
        for _ in range(_MAX_ROUNDS):
            outdated: set[tuple[str, ...]] = set()
            for number, key in enumerate(waiting):
                text, file, dialect = texts[key]
                scripts[key] = analyse(
                    text,
                    dialect=dialect,
                    columns=columns,
                    file=file,
                    progress=self._progress_of(step, number, len(waiting)),
                )
                outdated |= columns.add_created(_complete_columns(scripts[key]))
            waiting = [
                key
                for key, script in scripts.items()
                if any(read.table in outdated for read in script.reads)
            ]
            if not waiting:
                break
        return scripts

    def _progress_of(self, step: str, number: int, files: int) -> Callable[[float], None]:
        """A callback that reports the overall progress while one file is analysed."""
        return lambda share: self._progress(step, files=number, share=(number + share) / files)


def _definitions(script: ScriptLineage) -> Iterator[TableWrite]:
    """The tables and views that a script creates; a view of ClickHouse may write to a table."""
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
        if write.is_whole and write.columns and ALL not in write.columns
    }


_WORD: Final = re.compile(r"\w+")
_CREATED_TABLE: Final = re.compile(
    r"\b(?:table|view|into|overwrite|merge)\s+(?:if\s+not\s+exists\s+)?([\w.\"`\[\]$-]+)",
    re.IGNORECASE,
)


def sort_by_dependency(texts: Mapping[str, str]) -> list[str]:
    """The keys of SQL texts, creators of tables before their readers.

    Regular expressions suffice, since scripts are analysed again if the order was wrong."""
    words_by_key = {key: frozenset(_WORD.findall(text.lower())) for key, text in texts.items()}
    makers: dict[str, str] = {}
    for key, text in texts.items():
        for name in _CREATED_TABLE.findall(text):
            last = _WORD.findall(name.lower().rpartition(".")[2])
            if last:
                makers.setdefault(last[0], key)
    needed: dict[str, set[str]] = {}
    for key, found in words_by_key.items():
        named = found & makers.keys()
        needed[key] = {makers[name] for name in named} - {key}
    # Depth first: a cycle only affects the order of its own texts.
    ordered: list[str] = []
    visited: set[str] = set()
    for start in texts:
        path = [] if start in visited else [(start, iter(sorted(needed[start])))]
        visited.add(start)
        while path:
            key, rest = path[-1]
            dependency = next((each for each in rest if each not in visited), None)
            if dependency is None:
                ordered.append(key)
                path.pop()
            else:
                visited.add(dependency)
                path.append((dependency, iter(sorted(needed[dependency]))))
    return ordered
