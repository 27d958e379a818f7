"""Amundsen's graph as databuilder publishes it: nodes, relations, and changes to both."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

KIND: Final = "amundsen"
Properties: TypeAlias = dict[str, Any]

TABLE: Final = "Table"
COLUMN: Final = "Column"
DASHBOARD: Final = "Dashboard"
USER: Final = "User"
TAG: Final = "Tag"
BADGE: Final = "Badge"
# Holds what Amundsen has no kind of node for; Amundsen ignores it.
ITEM: Final = "LumosItem"
# On nodes that Lumos created only because something refers to them.
REFERENCE: Final = "lumos_reference"

# Types of relations from a table, a column or a dashboard, and their reverse types. Databuilder
# always writes both directions, and Lumos reads this one.
REVERSE: Final = {
    "CLUSTER_OF": "CLUSTER", "COLUMN": "COLUMN_OF", "DASHBOARD_GROUP_OF": "DASHBOARD_GROUP",
    "DASHBOARD_OF": "DASHBOARD", "DASHBOARD_WITH_TABLE": "TABLE_OF_DASHBOARD",
    "DESCRIPTION": "DESCRIPTION_OF", "HAS_BADGE": "BADGE_FOR", "HAS_UPSTREAM": "HAS_DOWNSTREAM",
    "LAST_UPDATED_AT": "LAST_UPDATED_TIME_OF", "OWNER": "OWNER_OF", "READ_BY": "READ",
    "SCHEMA_OF": "SCHEMA", "TABLE_OF": "TABLE", "TAGGED_BY": "TAG", "WATERMARK": "BELONG_TO_TABLE",
}  # fmt: skip
# The relations that are read of each label, and those that lead to nodes that belong to it.
FOLLOWED: Final = {
    TABLE: ("COLUMN", "DESCRIPTION", "HAS_BADGE", "HAS_UPSTREAM", "LAST_UPDATED_AT", "OWNER",
            "READ_BY", "TABLE_OF", "TAGGED_BY", "WATERMARK"),
    COLUMN: ("DESCRIPTION", "HAS_BADGE", "HAS_UPSTREAM"),
    DASHBOARD: ("DASHBOARD_OF", "DASHBOARD_WITH_TABLE", "DESCRIPTION", "OWNER", "TAGGED_BY"),
}  # fmt: skip
PARTS: Final = ("COLUMN", "DESCRIPTION", "LAST_UPDATED_AT", "WATERMARK")
# The properties of nodes and relations that Lumos reads and writes, besides those with its
# prefix; others are left alone.
MODELLED: Final = {
    TABLE: {"name", "is_view"},
    COLUMN: {"name", "col_type", "sort_order"},
    DASHBOARD: {"name", "dashboard_url"},
    USER: {"email", "full_name", "role_name", "team_name", "is_active"},
    TAG: {"tag_type"},
    BADGE: {"category"},
    "Description": {"description"},
    "Programmatic_Description": {"description", "description_source"},
    "Timestamp": {"last_updated_timestamp", "timestamp", "name"},
    "READ_BY": {"read_count"},
    "Watermark": {"partition_key", "partition_value", "create_time"},
}
# A node without this property is only referred to.
MARK: Final = {
    TABLE: "name", COLUMN: "name", DASHBOARD: "name", USER: "is_active", TAG: "lumos_item",
    ITEM: "lumos_item",
}  # fmt: skip
# Nodes that stay as references while they have one of these relations; none: any relation.
NEEDED_BY: Final = {
    TABLE: ("HAS_DOWNSTREAM", "TABLE_OF_DASHBOARD"), COLUMN: ("HAS_DOWNSTREAM",),
    "Dashboardgroup": ("DASHBOARD",), "Schema": ("TABLE",), "Cluster": ("SCHEMA", "DASHBOARD_GROUP"),
    "Database": ("CLUSTER",), USER: (), TAG: (), BADGE: (),
}  # fmt: skip


class Node(NamedTuple):
    """A node by its label and its key, which is unique within the label."""

    label: str
    key: str


class Relation(NamedTuple):
    """A relation in both of its directions."""

    start: Node
    type: str
    end: Node
    reverse: str


def relation(start: Node, type: str, end: Node) -> Relation:
    """A relation of a known type."""
    return Relation(start, type, end, REVERSE[type])


Ends: TypeAlias = "Callable[[Node, str], dict[Node, Properties]]"


class Fragment(NamedTuple):
    """The nodes of a table, dashboard or other item, its relations and the nodes they lead to.

    `references` belong to nobody and are created if they do not exist. `chain` are the relations
    above a schema or a group of dashboards.
    """

    nodes: dict[Node, Properties]
    relations: dict[Relation, Properties]
    references: dict[Node, Properties]
    chain: tuple[Relation, ...] = ()

    @classmethod
    def empty(cls) -> "Fragment":
        return cls({}, {}, {})

    def ends(self) -> Ends:
        """A function that returns where relations of one type lead, sorted, with properties."""
        index: dict[tuple[Node, str], dict[Node, Properties]] = {}
        for each in sorted(self.relations):
            index.setdefault((each.start, each.type), {})[each.end] = self.relations[each]
        return lambda start, type: index.get((start, type), {})


class Change(NamedTuple):
    """What has to be written; a property that is None is removed."""

    nodes: dict[Node, Properties]
    relations: dict[Relation, Properties]
    references: dict[Node, Properties]
    removed_nodes: frozenset[Node]
    removed_relations: frozenset[Relation]

    def __bool__(self) -> bool:
        return bool(self.nodes or self.relations or self.removed_nodes or self.removed_relations)


def difference(current: Fragment, wanted: Fragment, before: Fragment) -> Change:
    """What turns `before` into `wanted`, without what others changed since in `current`."""
    nodes = {
        node: delta
        for node, properties in wanted.nodes.items()
        if (delta := _delta(current.nodes.get(node), properties, before.nodes.get(node)))
        is not None
    }
    relations = {
        each: delta
        for each, properties in wanted.relations.items()
        if (delta := _delta(current.relations.get(each), properties, before.relations.get(each)))
        is not None
    }
    is_attached = any(each.end.label in ("Schema", "Dashboardgroup") for each in relations)
    return Change(
        nodes,
        relations | dict.fromkeys(wanted.chain if is_attached else (), {}),
        {node: each for node, each in wanted.references.items() if node not in current.references},
        frozenset((before.nodes.keys() & current.nodes.keys()) - wanted.nodes.keys()),
        frozenset((before.relations.keys() & current.relations.keys()) - wanted.relations.keys()),
    )


def _delta(
    current: Properties | None, wanted: Properties, before: Properties | None
) -> Properties | None:
    if current is None:
        return {**wanted, REFERENCE: None}
    if wanted == before:
        return None
    changed = {key: value for key, value in wanted.items() if current.get(key) != value}
    return {**changed, **dict.fromkeys(current.keys() - wanted.keys())} or None


def modelled(label: str, properties: Mapping[str, Any]) -> Properties:
    """The properties of a node or relation that Lumos reads and writes."""
    known = MODELLED.get(label, set())
    return {
        key: value
        for key, value in properties.items()
        if (key in known or key.startswith("lumos_")) and key != REFERENCE
    }


def reference(node: Node) -> Properties:
    """The properties of a node that is only referred to."""
    own = {USER: {"email": node.key}, TAG: {"tag_type": "default"}}.get(node.label, {})
    return {**own, REFERENCE: True}


def merge_changes(changes: Iterable[Change]) -> Change:
    """The changes of several fragments as one."""
    merged = Change({}, {}, {}, frozenset(), frozenset())
    for each in changes:
        merged.nodes.update(each.nodes)
        merged.relations.update(each.relations)
        merged.references.update(each.references)
        merged = merged._replace(
            removed_nodes=merged.removed_nodes | each.removed_nodes,
            removed_relations=merged.removed_relations | each.removed_relations,
        )
    return merged


Plan: TypeAlias = Callable[[Mapping[Node, Fragment]], Sequence[Change]]


class Graph(ABC):
    """Where the nodes and relations are."""

    @abstractmethod
    def keys(self, label: str) -> Collection[str]:
        """The keys of all nodes with a label, except those that are only referred to."""

    @abstractmethod
    def read(self, nodes: Sequence[Node]) -> dict[Node, Fragment]:
        """The fragments of the nodes that exist."""

    @abstractmethod
    def change(self, nodes: Sequence[Node], plan: Plan) -> None:
        """Read fragments and write the changes that follow from them, all or none.

        `plan` may be called again after a conflict with another transaction.
        """

    @abstractmethod
    def tidy(self) -> None:
        """Remove nodes that Lumos created as references and that nothing refers to any more."""
