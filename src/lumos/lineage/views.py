"""Lineage of database views, from their definitions in scanned databases."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lumos.discovery.scan_recorder import RecordedScan, RecordedView
from lumos.errors import UnknownName
from lumos.lineage.name_index import NameIndex
from lumos.lineage.reported_lineage import (
    DatasetReference,
    ReportedEdge,
    ReportedLineage,
    TableName,
    UrnReference,
)
from lumos.lineage.resolver import ReferenceResolver, SchemaCache
from lumos.lineage.sql import SqlText, analyse, report_script
from lumos.lineage.sql.dialects import find_dialect, quote_name
from lumos.model.dataset import Dataset
from lumos.model.discovery import Problem
from lumos.model.urn import Urn
from lumos.store import Store
from lumos.store.transaction import current_user

_REPORTER_PREFIX: Final = "view:"
_PROBLEM_CODE: Final = "view_not_understood"


def record_view_lineage(store: Store, scan: RecordedScan) -> tuple[Problem, ...]:
    """Record the lineage of the views in a scan, and remove the lineage of dropped views.

    Returns problems in the definitions of the views.
    """
    recorded = set(store.lineage.reporter_names(_REPORTER_PREFIX))
    # Older stores have edges without scripts; these are read again.
    with_scripts = recorded - store.lineage.without_scripts(_REPORTER_PREFIX)

    def is_outdated(view: RecordedView) -> bool:
        # A MongoDB pipeline has no SQL script.
        known = with_scripts if view.dataset.definition is not None else recorded
        return view.is_changed or f"{_REPORTER_PREFIX}{view.dataset.urn}" not in known

    views = {view.dataset.urn for view in scan.views}
    # Datasets that are no longer views, and those that are missing.
    others = (*(urn for urn in scan.changes if urn not in views), *scan.missing)
    removed_reporters = [name for urn in others if (name := f"{_REPORTER_PREFIX}{urn}") in recorded]
    if not removed_reporters and not any(map(is_outdated, scan.views)):
        return ()
    at = datetime.now(UTC)
    resolver = ReferenceResolver(NameIndex(()), SchemaCache(store), at=at, by=current_user())
    problems: list[Problem] = []
    with store.transaction() as transaction:
        for view in filter(is_outdated, scan.views):
            lineage = _view_lineage(view.dataset, store)
            problems += _problems(view.dataset, lineage)
            resolved = resolver.resolve(lineage, dialect=None)
            transaction.lineage.report(
                resolved.reporter,
                resolved.edges,
                scripts=resolved.scripts,
                unparsed=resolved.unparsed,
                at=at,
            )
        for name in removed_reporters:
            transaction.lineage.report(name, (), at=at)
    return tuple(problems)


def _view_lineage(view: Dataset, store: Store) -> ReportedLineage:
    """The lineage of a view; names in its definition belong to its own database."""
    if view.definition is None:
        return report_pipeline(view, reporter=f"{_REPORTER_PREFIX}{view.urn}")
    urn = Urn.parse(view.urn)
    dialect = _dialect(view.definition.dialect)
    schemas = SchemaCache(store)

    def urn_of(parts: tuple[str, ...]) -> str:
        # A definition may omit the leading parts of a name.
        path = (*urn.path[: max(len(urn.path) - len(parts), 0)], *parts)
        return str(msgspec.structs.replace(urn, path=path))

    def columns(parts: tuple[str, ...]) -> list[str] | None:
        schema = schemas.of(urn_of(parts))
        return None if schema is None else [field.name for field in schema.fields]

    name = ".".join(quote_name(part, dialect) for part in urn.path)
    text = SqlText(f"CREATE VIEW {name} AS {view.definition.sql}", dialect=dialect)
    script = analyse(text.text, dialect=dialect, columns=columns)
    lineage = report_script(script, reporter=f"{_REPORTER_PREFIX}{view.urn}", text=text)
    view_reference = UrnReference(urn=view.urn)

    def to_urn(table: DatasetReference) -> UrnReference:
        assert isinstance(table, TableName)
        return UrnReference(urn=urn_of(table.parts))

    edges = (
        msgspec.structs.replace(edge, upstream=to_urn(edge.upstream), downstream=view_reference)
        for edge in lineage.edges
    )
    scripts = (
        msgspec.structs.replace(
            each,
            dataset=view_reference,
            tables=tuple((parts, to_urn(table)) for parts, table in each.tables),
        )
        for each in lineage.scripts
    )
    unparsed = (
        msgspec.structs.replace(
            each,
            reads=tuple(to_urn(table) for table in each.reads if isinstance(table, TableName)),
            writes=(view_reference,),
            others=tuple(to_urn(table) for table in each.others if isinstance(table, TableName)),
        )
        for each in lineage.unparsed
    )
    return msgspec.structs.replace(
        lineage, edges=tuple(edges), scripts=tuple(scripts), unparsed=tuple(unparsed)
    )


def _dialect(name: str) -> str | None:
    try:
        find_dialect(name)
    except UnknownName:
        return None
    return name


def _problems(view: Dataset, lineage: ReportedLineage) -> Iterator[Problem]:
    for each in lineage.problems:
        yield Problem(
            path=Urn.parse(view.urn).path_text,
            reason=f"The lineage of the view is incomplete: {each.reason}",
            code=_PROBLEM_CODE,
            remark=True,
        )


_VIEW_ON: Final = "mongodb.view_on"
_PIPELINE: Final = "mongodb.pipeline"
# Stages that read another collection, and the key with its name.
_COLLECTION_KEYS: Final = {"$lookup": "from", "$graphLookup": "from", "$unionWith": "coll"}


def collections_of(view: Dataset) -> tuple[str, ...]:
    """The collections that a MongoDB view reads; empty for other datasets."""
    properties = view.properties or {}
    if view.platform != "mongodb" or _VIEW_ON not in properties:
        return ()
    stages = msgspec.json.decode(properties.get(_PIPELINE, "[]"))
    return tuple(dict.fromkeys((properties[_VIEW_ON], *_collections_in(stages))))


def report_pipeline(view: Dataset, *, reporter: str) -> ReportedLineage:
    """Report edges from the collections of a MongoDB view to the view; columns are not tracked."""
    urn = Urn.parse(view.urn)
    edges = (
        ReportedEdge(
            upstream=UrnReference(
                urn=str(msgspec.structs.replace(urn, path=(*urn.path[:-1], name)))
            ),
            downstream=UrnReference(urn=view.urn),
        )
        for name in collections_of(view)
    )
    return ReportedLineage(reporter=reporter, edges=tuple(edges))


def _collections_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _collections_in(each)
    elif isinstance(value, dict):
        for stage, body in value.items():
            if stage == "$unionWith" and isinstance(body, str):
                yield body
            elif stage in _COLLECTION_KEYS and isinstance(body, dict):
                name = body.get(_COLLECTION_KEYS[stage])
                if isinstance(name, str):
                    yield name
            yield from _collections_in(body)
