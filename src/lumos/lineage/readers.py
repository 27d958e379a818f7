"""From recognised files to what their reporters say; SQL is analysed with what is known of it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lumos.config.sql_names import NameTemplate
from lumos.config.yaml_tree import ConfigurationError
from lumos.lineage import dbt, declared, openlineage, sql_files
from lumos.lineage.dbt import NoManifest, Relations
from lumos.lineage.name_index import Names
from lumos.lineage.order import in_order
from lumos.lineage.recognition import Given, Kind, Recognised
from lumos.lineage.reported import Problem, Reported, TableName
from lumos.lineage.schemas import Columns, Schemas
from lumos.lineage.sql import Script, SqlText, TableWrite, analyse, reported
from lumos.lineage.sql.names import dotted
from lumos.lineage.sql.script import ALL
from lumos.lineage.sql_files import ModelName, SqlFile, UnreadableSql
from lumos.progress import Progress

# How often texts are read again that read tables which others were found to make.
_MOST_ROUNDS: Final = 4


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A report, where it stands and the dialect of its names; `model` as in `ReporterReport`.

    `defines` are the tables and views that the file creates from a query.
    """

    reported: Reported
    place: str = ""
    dialect: str | None = None
    model: str | None = None
    defines: tuple[TableName, ...] = ()


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be read, so that what it said before stays."""

    name: str
    problems: tuple[Problem, ...]


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong in a file whose rest was read."""

    problems: tuple[Problem, ...]


Heard: TypeAlias = Said | Failure | Noted
# Gives what some reporters remember.
Recall: TypeAlias = Callable[[Collection[str]], Mapping[str, bytes]]


class FileReader:
    """Reads files of all kinds."""

    def __init__(
        self,
        names: Names,
        schemas: Schemas,
        *,
        recall: Recall,
        dialect: str | None,
        name_from: NameTemplate | None,
        progress: Progress,
    ) -> None:
        self._recall = recall
        self._names = names
        self._schemas = schemas
        self._dialect = dialect
        self._name_from = name_from
        self._announce = progress

    def read(self, recognised: Recognised) -> Iterator[Heard]:
        """What all files say, each kind after the other: first those that know more of names."""
        yield from self._openlineage(recognised.of(Kind.OPENLINEAGE))
        for given in recognised.of(Kind.DBT):
            yield self._dbt(given)
        yield from self._sql(recognised.of(Kind.SQL))
        for given in recognised.of(Kind.DECLARED):
            yield self._declared(given)

    def _declared(self, given: Given) -> Said | Failure:
        try:
            said = declared.report(given.file, name=given.name)
            return Said(reported=said, place=given.name, dialect=self._dialect)
        except ConfigurationError as error:
            problems = (
                Problem(place=given.name, line=each.place.line, reason=each.text)
                for each in error.problems
            )
            return Failure(name=given.name, problems=tuple(problems))

    def _openlineage(self, files: Sequence[Given]) -> Iterator[Heard]:
        """All events of all files together: those of one run may lie in several."""
        events: list[openlineage.Event] = []
        for number, given in enumerate(files):
            self._announce("Reading events", files=number, share=number / len(files))
            problems = []
            found = len(events)
            for each in openlineage.read_events(given.file, name=given.name):
                if isinstance(each, Problem):
                    problems.append(each)
                else:
                    events.append(each)
            if problems and len(events) == found:
                yield Failure(name=given.name, problems=tuple(problems))
            elif problems:
                yield Noted(problems=tuple(problems))
        for report in openlineage.reports(events, self._recall):
            yield Said(reported=report)

    def _dbt(self, given: Given) -> Said | Failure:
        try:
            project = dbt.read_project(given.file, name=given.name)
        except NoManifest as error:
            return Failure(
                name=given.name, problems=(Problem(place=given.name, reason=str(error)),)
            )
        relations = Relations(project)
        dialect = relations.dialect_name or self._dialect
        columns = Columns(
            self._names,
            self._schemas,
            dialect=dialect,
            platform=relations.platform,
            known=relations.columns(),
        )
        models = {each.key: each for each in dbt.models_of(project, relations)}
        texts = {key: SqlText(each.text, each.file, dialect) for key, each in models.items()}
        scripts = self._analysed(texts, columns, f"Reading {given.name}")
        analysed = {
            key: reported(
                script,
                reporter=f"dbt:{project.name}",
                platform=relations.platform,
                text=texts[key],
            )
            for key, script in scripts.items()
        }
        return Said(reported=dbt.report(project, analysed), dialect=dialect)

    def _sql(self, files: Sequence[Given]) -> Iterator[Said | Failure]:
        read: dict[str, SqlFile] = {}
        for given in files:
            try:
                read[given.name] = sql_files.read_sql(given.file, name=given.name)
            except UnreadableSql as error:
                problem = Problem(place=given.name, reason=str(error))
                yield Failure(name=given.name, problems=(problem,))
        models = {name: sql_files.model_of(file, self._dialect) for name, file in read.items()}
        named = {
            name: sql_files.model_name(name, self._name_from)
            for name, model in models.items()
            if model is not None
        }
        for name, table in self._model_tables(named, read).items():
            if table != read[name].table:
                read[name] = sql_files.sql_of(read[name].text, name=name, table=table)
                models[name] = sql_files.model_of(read[name], self._dialect)
        columns = Columns(self._names, self._schemas, dialect=self._dialect)
        texts = {
            name: SqlText(models[name] or file.sql, name, self._dialect)
            for name, file in read.items()
        }
        scripts = self._analysed(texts, columns, "Reading SQL")
        for name, script in scripts.items():
            file = read[name]
            yield Said(
                reported=sql_files.report(file, script, text=texts[name]),
                place=name,
                dialect=self._dialect,
                model=dotted(named[name].name) if name in named else None,
                defines=tuple(TableName(parts=write.table) for write in _definitions(script)),
            )

    def _model_tables(
        self, named: Mapping[str, ModelName], read: Mapping[str, SqlFile]
    ) -> dict[str, tuple[str, ...]]:
        """The table that each file with nothing but a query creates.

        It is the dataset of that name, if there is one, or named by a rule of the configuration.
        Otherwise the path of the file is its name, whatever other files there are.
        """
        tables: dict[str, tuple[str, ...]] = {}
        datasets: dict[str, str | None] = {}
        for file, model in named.items():
            if self._names.has_rule(TableName(parts=model.name), dialect=self._dialect):
                tables[file] = model.name
                continue
            tables[file], datasets[file] = model.path, None
            sources = {self._known(each) for each in sql_files.tables_in_from(read[file].sql)}
            for spelling in model.spellings:
                found = self._known(spelling)
                # A query on raw.orders in orders.sql does not create raw.orders.
                if found is not None and (spelling == model.path or found not in sources):
                    tables[file], datasets[file] = spelling, found
                    break
        for file, dataset in datasets.items():
            path = named[file].path
            self._names.add_model(path, file, dialect=self._dialect, dataset=dataset)
        return tables

    def _known(self, table: tuple[str, ...]) -> str | None:
        found = self._names.find(TableName(parts=table), dialect=self._dialect)
        return found.urn if found.urn in self._names else None

    def _analysed(
        self, texts: Mapping[str, SqlText], columns: Columns, step: str
    ) -> dict[str, Script]:
        """The scripts of all texts; what one makes is known to those that read it."""
        scripts: dict[str, Script] = {}
        waiting = in_order({key: each.text for key, each in texts.items()})
        self._announce(step)
        for _ in range(_MOST_ROUNDS):
            missed: set[tuple[str, ...]] = set()
            for number, key in enumerate(waiting):
                text, file, dialect = texts[key]
                scripts[key] = analyse(
                    text,
                    dialect=dialect,
                    columns=columns,
                    file=file,
                    progress=self._progress(step, number, len(waiting)),
                )
                missed |= columns.learn(_made(scripts[key]))
            waiting = [
                key
                for key, script in scripts.items()
                if any(read.table in missed for read in script.reads)
            ]
            if not waiting:
                break
        return scripts

    def _progress(self, step: str, number: int, files: int) -> Callable[[float], None]:
        """Announces how far the files are while one of them is analysed."""
        return lambda share: self._announce(step, files=number, share=(number + share) / files)


def _definitions(script: Script) -> Iterator[TableWrite]:
    """Tables and views that a script creates; ClickHouse's views may also write to a table."""
    for statement in script.statements:
        for write in statement.writes:
            if write.is_view or statement.kind in ("CREATE_TABLE", "SELECT_INTO"):
                yield write


def _made(script: Script) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The columns of tables that a script fills, where all of them are known."""
    return {
        write.table: write.columns
        for statement in script.statements
        for write in statement.writes
        if write.is_whole and write.columns and ALL not in write.columns
    }
