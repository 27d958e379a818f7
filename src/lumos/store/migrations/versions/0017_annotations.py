"""Move annotations by reporter, including those of data sources, to a table of their own.

They were JSON in `beside`. The annotations of a data source were only in the properties that start
with the name of the platform; these properties stay, since they are displayed and exported.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_PAGE = 500
_PREFIX = "said:"
_FORMER_SOURCE, _SOURCE = "place", "source"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Path, slot and name; value, author and time.
_Key = tuple[str, str, str]
_Annotation = tuple[str | None, str | None, int | None]
_Annotations = dict[str, dict[_Key, _Annotation]]

_DATASET = sa.table("dataset", sa.column("urn"), sa.column("platform"))
_ASPECT = sa.table("aspect", sa.column("urn"), sa.column("name"), sa.column("body", sa.LargeBinary))
_BESIDE = sa.table("beside", sa.column("urn"), sa.column("name"), sa.column("body", sa.LargeBinary))


def upgrade() -> None:
    annotation = op.create_table(
        "annotation",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("digest", sa.String(32), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("slot", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("reporter", sa.Text, nullable=False),
        sa.Column("reporter_key", sa.BigInteger, nullable=False),
        sa.Column("author", sa.Text),
        sa.Column("recorded_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("urn", "digest", name="pk_annotation"),
        sa.ForeignKeyConstraint(["urn"], ["dataset.urn"], name="fk_annotation_urn"),
        sqlite_with_rowid=False,
    )
    connection = op.get_bind()
    for urns, platforms in _pages(connection):
        annotations = _stored(connection, urns)
        aspects = _aspects(connection, urns)
        rows: list[dict[str, Any]] = []
        for urn in urns:
            own = annotations.get(urn, {})
            _add_source(own, platforms[urn], aspects.get(urn, {}))
            rows += _rows(urn, own)
        if rows:
            connection.execute(annotation.insert(), rows)
    connection.execute(sa.delete(_BESIDE).where(_BESIDE.c.name.startswith(_PREFIX)))
    op.create_index("ix_annotation_reporter_key", "annotation", ["reporter_key"])


def _pages(connection: sa.Connection) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Pages of datasets with their platforms."""
    dataset = _DATASET.c
    statement = sa.select(dataset.urn, dataset.platform).order_by(dataset.urn).limit(_PAGE)
    page = statement
    while platforms := {row.urn: row.platform for row in connection.execute(page)}:
        urns = list(platforms)
        yield urns, platforms
        page = statement.where(dataset.urn > urns[-1])


def _stored(connection: sa.Connection, urns: list[str]) -> dict[str, _Annotations]:
    found: dict[str, _Annotations] = {}
    beside = _BESIDE.c
    statement = sa.select(beside.urn, beside.body).where(
        beside.urn.in_(urns), beside.name.startswith(_PREFIX)
    )
    for urn, body in connection.execute(statement):
        stored = json.loads(body)
        reporter = _SOURCE if stored["reporter"] == _FORMER_SOURCE else stored["reporter"]
        found.setdefault(urn, {})[reporter] = {
            (row.get("path", ""), row["slot"], row.get("name", "")): _annotation(row["word"])
            for row in stored["rows"]
        }
    return found


def _annotation(word: dict[str, Any]) -> _Annotation:
    at = None
    if word.get("at") is not None:
        moment = datetime.fromisoformat(word["at"])
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        at = (moment - _EPOCH) // timedelta(microseconds=1)
    return word.get("value", ""), word.get("author"), at


def _aspects(connection: sa.Connection, urns: list[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    aspect = _ASPECT.c
    statement = sa.select(aspect.urn, aspect.name, aspect.body).where(
        aspect.urn.in_(urns), aspect.name.in_(("properties", "ownership"))
    )
    for urn, name, body in connection.execute(statement):
        found.setdefault(urn, {})[name] = json.loads(body)
    return found


def _add_source(annotations: _Annotations, platform: str, aspects: dict[str, Any]) -> None:
    """Add the annotations of the data source to those of a dataset."""
    others = {key for reporter, own in annotations.items() if reporter != _SOURCE for key in own}
    reported = annotations.get(_SOURCE, {})
    added: dict[_Key, _Annotation] = {}
    for name, text in (aspects.get("properties") or {}).items():
        key = ("", "property", name)
        # A property that a user wrote belongs to the user, whatever its name.
        if name.startswith(f"{platform}.") and key not in others:
            added[key] = text, None, None
    every = {**added, **reported}
    comment, *_ = every.get(("", "property", f"{platform}.comment"), (None,))
    if comment is not None:
        added["", "description", ""] = comment, None, None
    owner, *_ = every.get(("", "property", f"{platform}.owner"), (None,))
    if owner is not None:
        named = others | reported.keys()
        added["", "owner", _owner_name(owner, aspects.get("ownership"), named)] = "", None, None
    if added or reported:
        annotations[_SOURCE] = {**added, **reported}


def _owner_name(owner: str, ownership: dict[str, Any] | None, keys: set[_Key]) -> str:
    """The owner's name in annotations; the property does not say whether it is a group."""
    type = "TECHNICAL_OWNER"
    names = [
        f"{each.get('type', type)}:{each.get('kind', 'user')}:{each['name']}"
        for each in (ownership or {}).get("owners", ())
    ]
    names += [name for path, slot, name in sorted(keys) if (path, slot) == ("", "owner")]
    possible = (f"{type}:{kind}:{owner}" for kind in ("user", "group"))
    return next((name for name in possible if name in names), f"{type}:user:{owner}")


def _rows(urn: str, annotations: _Annotations) -> Iterator[dict[str, Any]]:
    for reporter, own in annotations.items():
        digest = hashlib.blake2b(reporter.encode(), digest_size=8).digest()
        reporter_key = int.from_bytes(digest, "big", signed=True)
        for (path, slot, name), (value, author, at) in own.items():
            text = f"{len(reporter)}:{len(path)}:{slot}:{reporter}{path}{name}"
            yield {
                "urn": urn,
                "digest": hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
                "path": path,
                "slot": slot,
                "name": name,
                "value": value,
                "reporter": reporter,
                "reporter_key": reporter_key,
                "author": author,
                "recorded_at": at,
            }
