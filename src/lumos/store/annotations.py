"""Annotations of datasets: one row for each reporter, field and slot."""

import hashlib
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, bindparam, delete, select

from lumos.model.annotation import (
    DATA_SOURCE,
    Annotation,
    AnnotationKey,
    AnnotationsByReporter,
)
from lumos.store import tables
from lumos.store.database import Database, hash_name
from lumos.store.statements import among, batches, replace


class StoredAnnotations:
    """Reads the annotations of all datasets in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, urns: Collection[str]) -> dict[str, AnnotationsByReporter]:
        """The annotations of the given datasets by URN; datasets without any are omitted."""
        with self._database.reading() as connection:
            return AnnotationRows(connection).of(urns)

    def contested(self, urns: Collection[str]) -> dict[str, AnnotationsByReporter]:
        """The annotations of those datasets that have one by a reporter other than the source."""
        found: dict[str, AnnotationsByReporter] = {}
        with self._database.reading() as connection:
            for batch in batches(urns):
                found |= _by_urn(connection.execute(_SELECT_CONTESTED, {"urns": batch}))
        return found

    def reported(self, source: str) -> dict[str, AnnotationsByReporter]:
        """The annotations that the source itself reported about its datasets, by URN."""
        statement = _SELECT.join_from(tables.annotation, tables.dataset).where(
            tables.dataset.c.source == source,
            _ROW.reporter_key == _reporter_key(DATA_SOURCE),
        )
        with self._database.reading() as connection:
            return _by_urn(connection.execute(statement))

    def reporters(self, prefix: str) -> tuple[str, ...]:
        """The reporters whose names begin with a prefix."""
        statement = select(_ROW.reporter).distinct().order_by(_ROW.reporter)
        begins = _ROW.reporter.startswith(prefix, autoescape=True)
        with self._database.reading() as connection:
            return tuple(connection.execute(statement.where(begins)).scalars())

    def annotating(self, reporters: Collection[str]) -> frozenset[str]:
        """Those of the given reporters that have annotated a dataset."""
        with self._database.reading() as connection:
            keys = {_reporter_key(each) for each in reporters}
            statement = select(_ROW.reporter).distinct()
            found = connection.scalars(statement.where(among(connection, _ROW.reporter_key, keys)))
            return frozenset(found).intersection(reporters)

    def urns(self, reporter: str) -> tuple[str, ...]:
        """The datasets that a reporter has annotated."""
        statement = select(_ROW.urn).distinct().order_by(_ROW.urn)
        by_reporter = statement.where(
            _ROW.reporter_key == _reporter_key(reporter), _ROW.reporter == reporter
        )
        with self._database.reading() as connection:
            return tuple(connection.scalars(by_reporter))


class AnnotationRows:
    """Reads and writes annotations in a transaction; rows are collected and written together."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._new: dict[tuple[str, str], dict[str, Any]] = {}
        self._deleted: set[tuple[str, str]] = set()

    def get(self, urn: str) -> AnnotationsByReporter:
        """The annotations of a dataset."""
        return self.of([urn]).get(urn, {})

    def of(self, urns: Collection[str]) -> dict[str, AnnotationsByReporter]:
        """The annotations of the given datasets by URN; datasets without any are omitted."""
        self.flush()
        found: dict[str, AnnotationsByReporter] = {}
        for batch in batches(urns):
            found |= _by_urn(self._connection.execute(_SELECT_BY_URN, {"urns": batch}))
        return found

    def put(
        self, urn: str, annotations: AnnotationsByReporter, *, before: AnnotationsByReporter
    ) -> None:
        """Set the annotations of a dataset; only rows that differ from `before` are written."""
        for reporter, by_key in annotations.items():
            earlier = before.get(reporter, {})
            for key, annotation in by_key.items():
                if earlier.get(key) != annotation:
                    row = _row(urn, reporter, key, annotation)
                    self._new[urn, row["digest"]] = row
                    self._deleted.discard((urn, row["digest"]))
        for reporter, by_key in before.items():
            for key in by_key.keys() - annotations.get(reporter, {}).keys():
                row_key = urn, _digest(reporter, key)
                self._deleted.add(row_key)
                self._new.pop(row_key, None)

    def flush(self) -> None:
        """Write the rows that were collected so far."""
        if self._deleted:
            deleted = [
                {"the_urn": urn, "the_digest": digest} for urn, digest in sorted(self._deleted)
            ]
            self._connection.execute(_DELETE, deleted)
            self._deleted.clear()
        if self._new:
            statement = replace(self._connection.dialect.name, tables.annotation)
            self._connection.execute(statement, list(self._new.values()))
            self._new.clear()

    def copy(self, urn: str, into: str) -> None:
        """Copy the annotations of a dataset to another one, unless that one is annotated already.

        A dataset with annotations of the data source only is not regarded as annotated.
        """
        existing = self.get(into)
        is_annotated = bool(existing.keys() - {DATA_SOURCE})
        copied = {
            reporter: annotations
            for reporter, annotations in self.get(urn).items()
            if reporter not in existing and (reporter == DATA_SOURCE or not is_annotated)
        }
        self.put(into, {**existing, **copied}, before=existing)


def _row(urn: str, reporter: str, key: AnnotationKey, annotation: Annotation) -> dict[str, Any]:
    return {
        "urn": urn,
        "digest": _digest(reporter, key),
        **key._asdict(),
        "value": annotation.value,
        "reporter": reporter,
        "reporter_key": _reporter_key(reporter),
        "author": annotation.author,
        "recorded_at": annotation.at,
    }


def _digest(reporter: str, key: AnnotationKey) -> str:
    # The lengths make the text unique: without them, `a` + `bc` would equal `ab` + `c`.
    text = f"{len(reporter)}:{len(key.path)}:{key.slot}:{reporter}{key.path}{key.name}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


_reporter_key = lru_cache(maxsize=100)(hash_name)


def _by_urn(rows: Iterable[Any]) -> dict[str, AnnotationsByReporter]:
    found: dict[str, dict[str, dict[AnnotationKey, Annotation]]] = {}
    for urn, path, slot, name, value, reporter, author, at in rows:
        annotations = found.setdefault(urn, {}).setdefault(reporter, {})
        annotation = Annotation(value=value, author=author, at=at)
        annotations[AnnotationKey(path, slot, name)] = annotation
    # A copy, since dictionaries are invariant.
    return dict(found)


# Built once: building a statement takes longer than running it.
_ROW: Final = tables.annotation.c
_URNS: Final[BindParameter[Any]] = bindparam("urns", expanding=True)
_SELECT: Final = select(
    _ROW.urn,
    _ROW.path,
    _ROW.slot,
    _ROW.name,
    _ROW.value,
    _ROW.reporter,
    _ROW.author,
    _ROW.recorded_at,
)
_SELECT_BY_URN: Final = _SELECT.where(_ROW.urn.in_(_URNS))
_CONTESTED_URNS: Final = select(_ROW.urn).where(
    _ROW.urn.in_(_URNS), _ROW.reporter_key != _reporter_key(DATA_SOURCE)
)
_SELECT_CONTESTED: Final = _SELECT.where(_ROW.urn.in_(_CONTESTED_URNS))
_DELETE: Final = delete(tables.annotation).where(
    _ROW.urn == bindparam("the_urn"), _ROW.digest == bindparam("the_digest")
)
