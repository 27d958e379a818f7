"""Rename the stored fields that only one catalog has to `raw`, as in snapshot format 1.1."""

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_FORMER, _NAME = "carried", "raw"
_MENTIONS = b'"carried"'
_PAGE = 500
_TABLES = {
    "item": (("kind", "key"), ("body",)),
    "merge_base": (("platform", "kind", "key"), ("body",)),
    "import_step": (("run", "kind", "key"), ("before", "after", "base")),
}


def upgrade() -> None:
    connection = op.get_bind()
    beside = sa.table("beside", sa.column("name"))
    connection.execute(sa.update(beside).where(beside.c.name == _FORMER).values(name=_NAME))
    for name, (keys, bodies) in _TABLES.items():
        _rename(connection, name, keys, bodies)


def _rename(
    connection: sa.Connection, name: str, keys: Iterable[str], bodies: Iterable[str]
) -> None:
    table = sa.table(
        name,
        *(sa.column(key, sa.Text) for key in keys),
        *(sa.column(body, sa.LargeBinary) for body in bodies),
    )
    order = [table.c[key] for key in keys]
    rows = connection.execute(sa.select(table).order_by(*order)).yield_per(_PAGE)
    changed = [
        (tuple(getattr(row, key) for key in keys), values)
        for row in rows
        if (values := {body: _renamed(getattr(row, body)) for body in bodies})
        and any(values[body] != getattr(row, body) for body in bodies)
    ]
    for key, values in changed:
        where = [column == value for column, value in zip(order, key, strict=True)]
        connection.execute(sa.update(table).where(*where).values(**values))


def _renamed(body: bytes | None) -> bytes | None:
    if body is None or _MENTIONS not in body:
        return body
    # Values must not be decoded: amounts may have more digits than a float.
    entry = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    renamed = {_NAME if key == _FORMER else key: value for key, value in entry.items()}
    return msgspec.json.encode(renamed)
