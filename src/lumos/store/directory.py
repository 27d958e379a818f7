"""Where everything lies, in short: what names and places are looked up in."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import exists, or_, select

from lumos.model.dataset import Ownership
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.records import State
from lumos.store.rows import portions

_PAGED: Final = {"yield_per": 1000}


class Listing(NamedTuple):
    """A dataset's names, and where its data lies."""

    urn: str
    name: str
    platform: str
    state: State
    uri: str | None


class _Uri(msgspec.Struct):
    uri: str


class Directory:
    """The datasets of a store and the ends of its lineage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def datasets(self) -> Iterator[Listing]:
        """Every dataset, also those that are gone."""
        dataset, aspect = tables.dataset.c, tables.aspect.c
        location = (aspect.urn == dataset.urn) & (aspect.name == "location")
        statement = select(
            dataset.urn, dataset.name, dataset.platform, dataset.state, aspect.body
        ).select_from(tables.dataset.outerjoin(tables.aspect, location))
        with self._database.reading() as connection:
            for row in connection.execute(statement, execution_options=_PAGED):
                uri = None if row.body is None else msgspec.json.decode(row.body, type=_Uri).uri
                yield Listing(row.urn, row.name, row.platform, row.state, uri)

    def ends(self) -> Iterator[str]:
        """Every URN that data flows from or to, whether or not it is a dataset."""
        node, edge = tables.lineage_node.c, tables.lineage_edge.c
        touched = or_(
            exists().where(edge.upstream == node.id), exists().where(edge.downstream == node.id)
        )
        with self._database.reading() as connection:
            yield from connection.scalars(select(node.urn).where(touched))

    def reporters(self, prefix: str) -> Iterator[str]:
        """The names of those who tell of lineage that begin in some way."""
        name = tables.lineage_reporter.c.name
        with self._database.reading() as connection:
            yield from connection.scalars(
                select(name).where(name.startswith(prefix, autoescape=True))
            )

    def owners(self, urns: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Who answers for some datasets, each name once; nothing of those that have nobody."""
        aspect = tables.aspect.c
        found: dict[str, tuple[str, ...]] = {}
        with self._database.reading() as connection:
            for some in portions(urns):
                wanted = (aspect.name == "ownership") & aspect.urn.in_(some)
                for row in connection.execute(select(aspect.urn, aspect.body).where(wanted)):
                    owners = from_json(row.body, Ownership).owners
                    if owners:
                        found[row.urn] = tuple(dict.fromkeys(each.name for each in owners))
        return found

    def schemas(self, urns: Collection[str]) -> dict[str, Schema]:
        """The present schemas of some datasets."""
        dataset, body = tables.dataset.c, tables.schema_body.c
        hashes: dict[str, str] = {}
        schemas: dict[str, Schema] = {}
        with self._database.reading() as connection:
            for some in portions(urns):
                known = (dataset.schema_hash.is_not(None)) & dataset.urn.in_(some)
                rows = connection.execute(select(dataset.urn, dataset.schema_hash).where(known))
                hashes |= {row.urn: row.schema_hash for row in rows}
            # Many datasets may have the same one.
            for some in portions(set(hashes.values())):
                wanted = select(body.hash, body.body).where(body.hash.in_(some))
                for row in connection.execute(wanted):
                    schemas[row.hash] = from_json(row.body, Schema)
        return {urn: schemas[hash] for urn, hash in hashes.items() if hash in schemas}
