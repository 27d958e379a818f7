"""Annotations of datasets: one row for each reporter and dataset, next to the aspects."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Connection, delete, select

from lumos.model.annotation import AnnotationMap, AnnotationsByReporter, ReporterAnnotations
from lumos.model.json_codec import from_json, to_json
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.statements import replace

# Only rows of annotations have a name with this prefix.
PREFIX: Final = "said:"
_BESIDE: Final = tables.extras.c
_IS_ANNOTATION: Final = _BESIDE.name.startswith(PREFIX)


class StoredAnnotations:
    """Reads the annotations of all datasets in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_source(self, source: str) -> dict[str, AnnotationsByReporter]:
        """The annotations of the datasets of a source that have any, by URN."""
        statement = (
            select(_BESIDE.urn, _BESIDE.name, _BESIDE.body)
            .join_from(tables.extras, tables.dataset)
            .where(tables.dataset.c.source == source, _IS_ANNOTATION)
        )
        with self._database.reading() as connection:
            return _by_urn(connection.execute(statement).all())

    def urns(self, reporter: str) -> tuple[str, ...]:
        """The datasets that a reporter has annotated."""
        statement = select(_BESIDE.urn).where(_BESIDE.name == _name(reporter)).order_by(_BESIDE.urn)
        with self._database.reading() as connection:
            return tuple(connection.scalars(statement))

    def all(self) -> Iterator[tuple[str, AnnotationsByReporter]]:
        """The annotations of every dataset that has any, by URN."""
        statement = (
            select(_BESIDE.urn, _BESIDE.name, _BESIDE.body)
            .where(_IS_ANNOTATION)
            .order_by(_BESIDE.urn, _BESIDE.name)
        )
        with self._database.reading() as connection:
            yield from _by_urn(connection.execute(statement).all()).items()


class AnnotationRows:
    """Reads and writes annotations in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, urn: str) -> AnnotationsByReporter:
        """The annotations of a dataset."""
        statement = select(_BESIDE.urn, _BESIDE.name, _BESIDE.body).where(
            _BESIDE.urn == urn, _IS_ANNOTATION
        )
        return _by_urn(self._connection.execute(statement).all()).get(urn, {})

    def put(self, urn: str, reporter: str, annotations: AnnotationMap) -> None:
        """Replaces all annotations that a reporter made of a dataset."""
        if annotations:
            name, body = annotation_row(reporter, annotations)
            row = {"urn": urn, "name": name, "body": body}
            self._connection.execute(replace(self._connection.dialect.name, tables.extras), row)
        else:
            self._connection.execute(
                delete(tables.extras).where(_BESIDE.urn == urn, _BESIDE.name == _name(reporter))
            )


def copy_annotations(connection: Connection, urn: str, into: str) -> None:
    """Copies the annotations of a dataset to another one that has none."""
    statement = select(tables.extras).where(_BESIDE.urn.in_((urn, into)), _IS_ANNOTATION)
    rows = connection.execute(statement).all()
    if any(row.urn == into for row in rows):
        return
    for row in rows:
        connection.execute(tables.extras.insert().values(**{**row._mapping, "urn": into}))


def annotations_in(beside: Mapping[str, bytes]) -> dict[str, AnnotationMap]:
    """The annotations among the stored extras of a dataset."""
    stored = (
        from_json(body, ReporterAnnotations)
        for name, body in beside.items()
        if is_annotation_row(name)
    )
    return {each.reporter: each.annotations for each in stored}


def is_annotation_row(name: str) -> bool:
    """Whether a stored extra of this name holds annotations."""
    return name.startswith(PREFIX)


def annotation_row(reporter: str, annotations: AnnotationMap) -> tuple[str, bytes]:
    """The name and the body of the row that stores a reporter's annotations of a dataset."""
    return _name(reporter), to_json(ReporterAnnotations.of(reporter, annotations))


def _name(reporter: str) -> str:
    # Names of reporters may be longer than the column allows.
    return f"{PREFIX}{hashlib.blake2b(reporter.encode(), digest_size=13).hexdigest()}"


def _by_urn(rows: Collection[Any]) -> dict[str, AnnotationsByReporter]:
    bodies: dict[str, dict[str, bytes]] = {}
    for row in rows:
        bodies.setdefault(row.urn, {})[row.name] = row.body
    return {urn: annotations_in(beside) for urn, beside in bodies.items()}
