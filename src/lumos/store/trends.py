"""Times from which trends are computed: coverage of datasets, incidents, duplicates."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import case, func, select, union_all

from lumos.model.change import EventType
from lumos.model.dataset import Documentation, Ownership
from lumos.model.json_codec import from_json
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.statements import among

# Events after which a dataset has another schema, or data again.
_SCHEMA_EVENTS: Final = (EventType.CREATED, EventType.RESTORED, EventType.SCHEMA_CHANGED)
_REPAIRS: Final = (*_SCHEMA_EVENTS, EventType.MODIFIED)


class Repair(NamedTuple):
    """When a dataset got another schema, or else new data."""

    at: datetime
    has_new_schema: bool


class CoverageTimes(NamedTuple):
    """When a live dataset was recorded, and since when it has an owner, a description, lineage."""

    created: datetime
    owned: datetime | None
    documented: datetime | None
    with_lineage: datetime | None


class Duplicates(NamedTuple):
    """Live datasets with the name and schema of another, and when others like them were deleted."""

    live: int
    retired: tuple[datetime, ...]


class TrendReader:
    """Reads the times of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def coverage(self) -> Iterator[CoverageTimes]:
        """The times of all live datasets.

        Owners and descriptions of an import have no time of their own: the dataset has had them
        since it was recorded.
        """
        dataset, annotation = tables.dataset.c, tables.annotation.c
        with self._database.reading() as connection:
            created = dict(
                connection.execute(
                    select(dataset.urn, dataset.created_at).where(dataset.state == "live")
                ).all()
            )
            annotated = {
                (urn, slot): at
                for urn, slot, at in connection.execute(
                    select(annotation.urn, annotation.slot, func.min(annotation.recorded_at))
                    .where(
                        annotation.path == "",
                        annotation.slot.in_(("owner", "description")),
                        annotation.value.is_not(None),
                    )
                    .group_by(annotation.urn, annotation.slot)
                )
            }
            owned = self._with_aspect("ownership")
            documented = self._with_aspect("documentation")
            lineage = self._lineage()
        for urn, at in created.items():
            yield CoverageTimes(
                at,
                annotated.get((urn, "owner")) or at if urn in owned else None,
                annotated.get((urn, "description")) or at if urn in documented else None,
                lineage.get(urn),
            )

    def _with_aspect(self, name: str) -> set[str]:
        """The datasets that have owners, or a description."""
        aspect = tables.aspect.c
        statement = select(aspect.urn, aspect.body).where(aspect.name == name)
        with self._database.reading() as connection:
            rows = connection.execute(statement)
            if name == "ownership":
                return {urn for urn, body in rows if from_json(body, Ownership).owners}
            return {urn for urn, body in rows if from_json(body, Documentation).description}

    def _lineage(self) -> dict[str, datetime]:
        """Since when datasets have lineage."""
        edge, node = tables.lineage_edge.c, tables.lineage_node.c
        ends = union_all(
            select(edge.upstream.label("node"), edge.first_seen),
            select(edge.downstream, edge.first_seen),
        ).subquery()
        statement = (
            select(node.urn, func.min(ends.c.first_seen))
            .join_from(ends, tables.lineage_node, node.id == ends.c.node)
            .group_by(node.urn)
        )
        with self._database.reading() as connection:
            return dict(connection.execute(statement).all())

    def repairs(self, urns: Collection[str], since: datetime) -> dict[str, list[Repair]]:
        """When datasets got another schema or new data, oldest first."""
        event = tables.change_event.c
        found: dict[str, list[Repair]] = {}
        with self._database.reading() as connection:
            statement = (
                select(event.urn, event.recorded_at, event.type)
                .where(
                    among(connection, event.urn, urns),
                    event.recorded_at >= since,
                    event.type.in_([each.value for each in _REPAIRS]),
                )
                .order_by(event.sequence)
            )
            for urn, at, type in connection.execute(statement):
                found.setdefault(urn, []).append(Repair(at, type in _SCHEMA_EVENTS))
        return found

    def duplicates(self) -> Duplicates:
        """Datasets that have the name and the schema of another one."""
        dataset = tables.dataset.c
        groups = (
            select(dataset.name, dataset.schema_hash, func.count().label("copies"))
            .where(dataset.state == "live", dataset.schema_hash.is_not(None))
            .group_by(dataset.name, dataset.schema_hash)
            .subquery()
        )
        same = (groups.c.name == dataset.name) & (groups.c.schema_hash == dataset.schema_hash)
        retired = (
            select(dataset.updated_at)
            .join_from(tables.dataset, groups, same)
            .where(dataset.state == "missing")
        )
        copies = select(func.coalesce(func.sum(groups.c.copies - 1), 0))
        with self._database.reading() as connection:
            return Duplicates(
                int(connection.execute(copies).scalar_one()),
                tuple(connection.execute(retired).scalars()),
            )

    def breaking_gate_results(self, since: datetime) -> tuple[datetime, ...]:
        """When each pull request, or else each revision, was first found to break something."""
        result = tables.gate_result.c
        statement = (
            select(func.min(result.recorded_at))
            .where(result.verdict == "breaking", result.recorded_at >= since)
            # Counts all revisions of a pull request once; results without one count separately.
            .group_by(
                result.repository,
                func.coalesce(result.pr, -1),
                case((result.pr.is_(None), result.head), else_=""),
            )
        )
        with self._database.reading() as connection:
            return tuple(connection.execute(statement).scalars())
