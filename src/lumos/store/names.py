"""Names that no dataset has."""

from collections import Counter
from typing import Final

from sqlalchemy import Connection, select

from lumos.model.urn import SCHEME
from lumos.store import tables
from lumos.store.errors import UnknownDataset

# Enough for a suggestion, and compared within a second.
_MOST: Final = 20_000


def unknown_dataset(connection: Connection, name: str) -> UnknownDataset:
    """The error that no dataset has a URN or a name, with the nearest that there are."""
    table = tables.dataset.c
    rows = connection.execute(
        select(table.urn, table.name).order_by(table.state, table.urn).limit(_MOST)
    ).all()
    datasets_called = Counter(recorded for _, recorded in rows)
    is_urn = name.startswith(SCHEME)
    known = [urn if is_urn or datasets_called[recorded] > 1 else recorded for urn, recorded in rows]
    return UnknownDataset(name, known)
