"""Which words about datasets are whose: a row for each reporter and dataset, beside the aspects."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Connection, delete, select

from lumos.model.json_codec import from_json, to_json
from lumos.model.words import Said, Saying, Words
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.rows import replace

# All rows of reporters, and no others, have a name that begins so.
PREFIX: Final = "said:"
_BESIDE: Final = tables.beside.c
_IS_REMARK: Final = _BESIDE.name.startswith(PREFIX)


class Remarks:
    """The words of all datasets in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_source(self, source: str) -> dict[str, Said]:
        """What is said of the datasets of a source, of those that anything is said of."""
        statement = (
            select(_BESIDE.urn, _BESIDE.name, _BESIDE.body)
            .join_from(tables.beside, tables.dataset)
            .where(tables.dataset.c.source == source, _IS_REMARK)
        )
        with self._database.reading() as connection:
            return _by_urn(connection.execute(statement).all())

    def urns(self, reporter: str) -> tuple[str, ...]:
        """The datasets that a reporter says something of."""
        statement = select(_BESIDE.urn).where(_BESIDE.name == _name(reporter)).order_by(_BESIDE.urn)
        with self._database.reading() as connection:
            return tuple(connection.scalars(statement))

    def all(self) -> Iterator[tuple[str, Said]]:
        """What is said of every dataset that anything is said of, by URN."""
        statement = (
            select(_BESIDE.urn, _BESIDE.name, _BESIDE.body)
            .where(_IS_REMARK)
            .order_by(_BESIDE.urn, _BESIDE.name)
        )
        with self._database.reading() as connection:
            yield from _by_urn(connection.execute(statement).all()).items()


class RemarkWriter:
    """Reads and writes words in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, urn: str) -> Said:
        """What is said of a dataset."""
        statement = select(_BESIDE.urn, _BESIDE.name, _BESIDE.body).where(
            _BESIDE.urn == urn, _IS_REMARK
        )
        return _by_urn(self._connection.execute(statement).all()).get(urn, {})

    def put(self, urn: str, reporter: str, words: Words) -> None:
        """Makes what a reporter says of a dataset exactly this."""
        if words:
            row = {"urn": urn, "name": _name(reporter), "body": body_of(reporter, words)}
            self._connection.execute(replace(self._connection.dialect.name, tables.beside), row)
        else:
            self._connection.execute(
                delete(tables.beside).where(_BESIDE.urn == urn, _BESIDE.name == _name(reporter))
            )


def hand_over(connection: Connection, urn: str, into: str) -> None:
    """Gives a dataset the words about another, where nobody has said anything of it."""
    statement = select(tables.beside).where(_BESIDE.urn.in_((urn, into)), _IS_REMARK)
    rows = connection.execute(statement).all()
    if any(row.urn == into for row in rows):
        return
    for row in rows:
        connection.execute(tables.beside.insert().values(**{**row._mapping, "urn": into}))


def said_of(beside: Mapping[str, bytes]) -> dict[str, Words]:
    """The words among all that is known beside a dataset's aspects."""
    sayings = (from_json(body, Saying) for name, body in beside.items() if is_remark(name))
    return {saying.reporter: saying.words for saying in sayings}


def is_remark(name: str) -> bool:
    """Whether what is known under a name is somebody's words."""
    return name.startswith(PREFIX)


def body_of(reporter: str, words: Words) -> bytes:
    """A reporter's words as they are kept."""
    return to_json(Saying.of(reporter, words))


def row_of(reporter: str, words: Words) -> tuple[str, bytes]:
    """A reporter's words under the name that they are kept by."""
    return _name(reporter), body_of(reporter, words)


def _name(reporter: str) -> str:
    # Names of reporters are as long as paths are, and the column is not.
    return f"{PREFIX}{hashlib.blake2b(reporter.encode(), digest_size=13).hexdigest()}"


def _by_urn(rows: Collection[Any]) -> dict[str, Said]:
    bodies: dict[str, dict[str, bytes]] = {}
    for row in rows:
        bodies.setdefault(row.urn, {})[row.name] = row.body
    return {urn: said_of(beside) for urn, beside in bodies.items()}
