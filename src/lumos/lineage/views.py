"""What views of a database are made from: their definitions become lineage with every scan."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from lumos.discovery.dataset_recorder import RecordedDataset
from lumos.discovery.scan_recorder import RecordedScan
from lumos.errors import UnknownName
from lumos.lineage.mongodb_views import collections_of, said_by_pipeline
from lumos.lineage.name_index import Names
from lumos.lineage.reported import Known, Reference, Reported, TableName
from lumos.lineage.schemas import Schemas
from lumos.lineage.sql import SqlText, analyse, reported
from lumos.lineage.sql.names import dialect_named
from lumos.lineage.urns import Placing
from lumos.model.dataset import Dataset
from lumos.model.discovery import Problem
from lumos.model.urn import Urn
from lumos.store import Store
from lumos.store.actor import who

REPORTER = "view:"
NOT_UNDERSTOOD = "view_not_understood"


def follow_views(store: Store, done: RecordedScan) -> tuple[Problem, ...]:
    """Records what the views of a scan are made from, and takes back what gone ones said.

    Gives what of their definitions could not be understood.
    """
    known = set(store.directory.reporters(REPORTER))
    # A store that kept no texts once has edges alone.
    told = known - store.lineage.without_scripts(REPORTER)
    changed = [
        outcome.dataset
        for outcome in done.outcomes
        if (outcome.dataset.definition is not None or collections_of(outcome.dataset))
        and (
            outcome.event is not None
            # A pipeline is no text of SQL.
            or f"{REPORTER}{outcome.dataset.urn}"
            not in (told if outcome.dataset.definition is not None else known)
        )
    ]
    gone = [name for name in _no_views(done.outcomes, done.missing) if name in known]
    if not changed and not gone:
        return ()
    at = datetime.now(UTC)
    placing = Placing(Names(()), Schemas(store), at=at, by=who())
    problems: list[Problem] = []
    with store.transaction() as transaction:
        for view in changed:
            said = _said(view, store)
            problems += _problems(view, said)
            placed = placing.place(said, dialect=None)
            transaction.lineage.report(
                placed.reporter, placed.edges, scripts=placed.scripts, unparsed=placed.unparsed,
                at=at,
            )  # fmt: skip
        for name in gone:
            transaction.lineage.report(name, (), at=at)
    return tuple(problems)


def _no_views(outcomes: Iterable[RecordedDataset], missing: Iterable[str]) -> Iterator[str]:
    """Reporters of what was a view and is none now, or is not there."""
    for outcome in outcomes:
        if outcome.dataset.definition is None and not collections_of(outcome.dataset):
            yield f"{REPORTER}{outcome.dataset.urn}"
    for urn in missing:
        yield f"{REPORTER}{urn}"


def _said(view: Dataset, store: Store) -> Reported:
    """What a view's definition says; its names are those of its own database."""
    if view.definition is None:
        return said_by_pipeline(view, reporter=f"{REPORTER}{view.urn}")
    urn = Urn.parse(view.urn)
    dialect = _dialect(view.definition.dialect)
    schemas = Schemas(store)

    def urn_of(parts: tuple[str, ...]) -> str:
        # A definition leaves out what is the same for all of its database.
        path = (*urn.path[: max(len(urn.path) - len(parts), 0)], *parts)
        return str(msgspec.structs.replace(urn, path=path))

    def columns(parts: tuple[str, ...]) -> list[str] | None:
        schema = schemas.of(urn_of(parts))
        return None if schema is None else [field.name for field in schema.fields]

    name = ".".join(_quoted(part) for part in urn.path)
    text = SqlText(f"CREATE VIEW {name} AS {view.definition.sql}", dialect=dialect)
    script = analyse(text.text, dialect=dialect, columns=columns)
    said = reported(script, reporter=f"{REPORTER}{view.urn}", text=text)
    itself = Known(urn=view.urn)

    def known(table: Reference) -> Known:
        assert isinstance(table, TableName)
        return Known(urn=urn_of(table.parts))

    edges = (
        msgspec.structs.replace(edge, upstream=known(edge.upstream), downstream=itself)
        for edge in said.edges
    )
    scripts = (
        msgspec.structs.replace(
            each,
            dataset=itself,
            tables=tuple((parts, known(table)) for parts, table in each.tables),
        )
        for each in said.scripts
    )
    unparsed = (
        msgspec.structs.replace(
            each,
            reads=tuple(known(table) for table in each.reads if isinstance(table, TableName)),
            writes=(itself,),
            others=tuple(known(table) for table in each.others if isinstance(table, TableName)),
        )
        for each in said.unparsed
    )
    return msgspec.structs.replace(
        said, edges=tuple(edges), scripts=tuple(scripts), unparsed=tuple(unparsed)
    )


def _dialect(name: str) -> str | None:
    try:
        dialect_named(name)
    except UnknownName:
        return None
    return name


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def _problems(view: Dataset, said: Reported) -> Iterator[Problem]:
    for each in said.problems:
        yield Problem(
            path=Urn.parse(view.urn).path_text,
            reason=f"The lineage of the view is not whole: {each.reason}",
            code=NOT_UNDERSTOOD,
            remark=True,
        )
