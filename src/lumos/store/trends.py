"""Figures from which trends are computed: coverage by day, times of incidents and duplicates."""

from collections.abc import Callable, Collection
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, and_, case, exists, func, select, type_coerce, union_all

from lumos.model.annotation import Slot
from lumos.model.change import EventType
from lumos.model.dataset import Documentation, Ownership
from lumos.model.json_codec import to_json
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


class Coverage(NamedTuple):
    """By day, how many of today's live datasets existed and had an owner, description or lineage.

    A dataset counts on the day since when it has had them, and not before it was recorded.
    """

    datasets: dict[date, int]
    owned: dict[date, int]
    documented: dict[date, int]
    with_lineage: dict[date, int]


class Duplicates(NamedTuple):
    """Live datasets with the name and schema of another, and when others like them were deleted."""

    live: int
    retired: tuple[datetime, ...]


class TrendReader:
    """Reads the figures of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def coverage(self) -> Coverage:
        """The coverage of all live datasets.

        Owners and descriptions of an import have no time of their own: the dataset has had them
        since it was recorded.
        """
        with self._database.reading() as connection:
            return Coverage(*(dict(connection.execute(each).all()) for each in _COVERAGE))

    def repairs(self, urns: Collection[str], since: datetime) -> dict[str, list[Repair]]:
        """When datasets got another schema or new data, oldest first."""
        event = tables.change_event.c
        found: dict[str, list[Repair]] = {}
        if not urns:
            return found
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
        other = tables.dataset.alias().c
        # Names are compared first: they have an index, and few datasets share a name.
        shared_names = select(_DATASET.name).group_by(_DATASET.name).having(func.count() > 1)
        groups = (
            select(func.count().label("copies"))
            .where(
                _DATASET.state == "live",
                _DATASET.schema_hash.is_not(None),
                _DATASET.name.in_(shared_names),
            )
            .group_by(_DATASET.name, _DATASET.schema_hash)
            .subquery()
        )
        copies = select(func.coalesce(func.sum(groups.c.copies - 1), 0))
        retired = select(_DATASET.updated_at).where(
            _DATASET.state == "missing",
            exists().where(
                other.name == _DATASET.name,
                other.schema_hash == _DATASET.schema_hash,
                other.state == "live",
            ),
        )
        with self._database.reading() as connection:
            return Duplicates(
                int(connection.execute(copies).scalar_one()),
                tuple(connection.execute(retired).scalars()),
            )

    def breaking_gate_results(self, since: datetime) -> tuple[datetime, ...]:
        """When the gate first found each pull request, or else each revision, to be breaking."""
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


def _days(since: Any, origin: Any) -> Any:
    """The number of live datasets by the day of a time; each is counted once."""
    created = _DATASET.created_at
    at = case((since > created, since), else_=created)
    day = type_coerce(type_coerce(at, BigInteger) // _MICROSECONDS_OF_A_DAY, tables.DayColumn)
    return (
        select(day, func.count()).select_from(origin).where(_DATASET.state == "live").group_by(day)
    )


def _annotated(slot: Slot) -> Any:
    """The time of the first annotation of that kind on a dataset, or NULL."""
    annotation = tables.annotation.c
    return (
        select(func.min(annotation.recorded_at))
        .where(
            annotation.urn == _DATASET.urn,
            annotation.slot == slot,
            annotation.path == "",
            annotation.value.is_not(None),
        )
        .correlate(tables.dataset)
        .scalar_subquery()
    )


def _with_aspect(name: str, slot: Slot, is_set: Callable[[Any], Any]) -> Any:
    aspect = tables.aspect.c
    joined = tables.aspect.join(tables.dataset, aspect.urn == _DATASET.urn)
    # A subquery, so that the first annotation is looked up once for each dataset.
    return _days(func.coalesce(_annotated(slot), _DATASET.created_at), joined).where(
        aspect.name == name, is_set(aspect.body)
    )


def _has_description(body: Any) -> Any:
    """Whether documentation as JSON begins with a description that is not empty."""
    empty = to_json(Documentation(description=""))[:-1]
    start = empty[:-1]
    return and_(
        func.substr(body, 1, len(start)) == start, func.substr(body, 1, len(empty)) != empty
    )


def _with_lineage() -> Any:
    edge, node = tables.lineage_edge.c, tables.lineage_node.c
    ends = union_all(
        select(edge.upstream.label("node"), edge.first_seen),
        select(edge.downstream, edge.first_seen),
    ).subquery()
    first = (
        select(ends.c.node, func.min(ends.c.first_seen).label("seen"))
        .group_by(ends.c.node)
        .subquery()
    )
    joined = (
        first.join(tables.lineage_node, node.id == first.c.node)
        .join(tables.dataset, node.urn == _DATASET.urn)
    )  # fmt: skip
    return _days(first.c.seen, joined)


_DATASET: Final = tables.dataset.c
_MICROSECONDS_OF_A_DAY: Final = 86_400_000_000
# In the order of the fields of `Coverage`. Without owners, ownership is an empty object.
_COVERAGE: Final = (
    _days(_DATASET.created_at, tables.dataset),
    _with_aspect("ownership", "owner", lambda body: body != to_json(Ownership())),
    _with_aspect("documentation", "description", _has_description),
    _with_lineage(),
)
