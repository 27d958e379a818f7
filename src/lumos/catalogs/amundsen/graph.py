"""Amundsen's graph as databuilder publishes it: its labels, types of relations and fragments."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.catalogs.packed_properties import Packed, pack, unpack
from lumos.model.catalog import CatalogEntry

KIND: Final = "amundsen"
Properties: TypeAlias = dict[str, Any]

TABLE: Final = "Table"
COLUMN: Final = "Column"
DASHBOARD: Final = "Dashboard"
USER: Final = "User"
TAG: Final = "Tag"
BADGE: Final = "Badge"
# The label of nodes for items that Amundsen has no label for; Amundsen ignores them.
ITEM: Final = "LumosItem"

# Types of relations from a node to its details, and their reverse types. Databuilder always writes
# both directions; Lumos reads these.
REVERSE: Final = {
    "CLUSTER_OF": "CLUSTER", "COLUMN": "COLUMN_OF", "DASHBOARD_GROUP_OF": "DASHBOARD_GROUP",
    "DASHBOARD_OF": "DASHBOARD", "DASHBOARD_WITH_TABLE": "TABLE_OF_DASHBOARD",
    "DESCRIPTION": "DESCRIPTION_OF", "HAS_BADGE": "BADGE_FOR", "HAS_UPSTREAM": "HAS_DOWNSTREAM",
    "LAST_UPDATED_AT": "LAST_UPDATED_TIME_OF", "OWNER": "OWNER_OF", "READ_BY": "READ",
    "SCHEMA_OF": "SCHEMA", "TABLE_OF": "TABLE", "TAGGED_BY": "TAG", "WATERMARK": "BELONG_TO_TABLE",
}  # fmt: skip
# By label: the types of relations from such a node that are read.
FOLLOWED: Final = {
    TABLE: ("COLUMN", "DESCRIPTION", "HAS_BADGE", "HAS_UPSTREAM", "LAST_UPDATED_AT", "OWNER",
            "READ_BY", "TABLE_OF", "TAGGED_BY", "WATERMARK"),
    COLUMN: ("DESCRIPTION", "HAS_BADGE", "HAS_UPSTREAM"),
    DASHBOARD: ("DASHBOARD_OF", "DASHBOARD_WITH_TABLE", "DESCRIPTION", "OWNER", "TAGGED_BY"),
}  # fmt: skip
# The types of relations that lead from a node to a part of it.
PARTS: Final = ("COLUMN", "DESCRIPTION", "LAST_UPDATED_AT", "WATERMARK")
# By label or type: the properties that Lumos reads and writes, besides those named `lumos_...`.
MODELLED: Final = {
    TABLE: {"name", "is_view"}, COLUMN: {"name", "col_type", "sort_order"}, TAG: {"tag_type"},
    USER: {"email", "full_name", "role_name", "team_name", "is_active"}, BADGE: {"category"},
    DASHBOARD: {"name", "dashboard_url"}, "Description": {"description"},
    "Programmatic_Description": {"description", "description_source"}, "READ_BY": {"read_count"},
    "Timestamp": {"last_updated_timestamp", "timestamp", "name"},
    "Watermark": {"partition_key", "partition_value"},
}  # fmt: skip
# By label: a property without which a node is only the target of references.
MARK: Final = {
    TABLE: "name", COLUMN: "name", DASHBOARD: "name", USER: "is_active", TAG: "lumos_item",
    ITEM: "lumos_item",
}  # fmt: skip


class Node(NamedTuple):
    """A node by its label and its key, which is unique within the label."""

    label: str
    key: str

    @property
    def reference(self) -> Properties:
        """The properties of a node that is only the target of references."""
        return {USER: {"email": self.key}, TAG: {"tag_type": "default"}}.get(self.label, {})


class Relation(NamedTuple):
    """A relation in both of its directions."""

    start: Node
    type: str
    end: Node
    reverse: str


def relation(start: Node, type: str, end: Node) -> Relation:
    return Relation(start, type, end, REVERSE[type])


Neighbours: TypeAlias = Callable[[Node, str], dict[Node, Properties]]


class Fragment(NamedTuple):
    """The nodes of a table, dashboard or other item, and their relations.

    `references` are the nodes of others that the relations lead to; they are created if they do not
    exist. `parents` are relations from a schema or a group of dashboards to its parents.
    """

    nodes: dict[Node, Properties]
    relations: dict[Relation, Properties]
    references: dict[Node, Properties]
    parents: tuple[Relation, ...] = ()

    @classmethod
    def of(cls, node: Node, properties: Properties) -> "Fragment":
        """A fragment of a single node."""
        return cls({node: properties}, {}, {})

    def refer(
        self, start: Node, type: str, end: Node, properties: Properties | None = None
    ) -> None:
        """Add a relation to a node that does not belong to the fragment."""
        if end.key and end not in self.nodes:
            self.references.setdefault(end, end.reference)
        if end.key:
            self.relations[relation(start, type, end)] = properties or {}

    def add_part(self, start: Node, type: str, end: Node, properties: Properties) -> None:
        """Add a node that is part of another node of the fragment."""
        self.references.pop(end, None)
        self.nodes[end] = properties
        self.relations[relation(start, type, end)] = {}

    def describe(self, start: Node, text: str | None) -> None:
        """Add the description that users edit in Amundsen."""
        if text is not None:
            end = Node("Description", f"{start.key}/_description")
            self.add_part(start, "DESCRIPTION", end, {"description": text})

    def add_read(
        self, each: Relation, details: Mapping[str, Any], properties: Mapping[str, Any]
    ) -> None:
        """Add a relation that was read with its `details`, and the node at its end."""
        label = each.end.label
        is_part = each.type in PARTS and (label not in MARK or MARK[label] in properties)
        if is_part or each.end not in self.nodes:
            (self.nodes if is_part else self.references)[each.end] = modelled(label, properties)
        self.relations[each] = modelled(each.type, details)

    def neighbours(self) -> Neighbours:
        """A function that returns the nodes at the end of relations of a type, with properties."""
        index: dict[tuple[Node, str], dict[Node, Properties]] = {}
        for each in sorted(self.relations):
            index.setdefault((each.start, each.type), {})[each.end] = self.relations[each]
        return lambda start, type: index.get((start, type), {})

    def description(self, neighbours: Neighbours, start: Node) -> str | None:
        texts = [
            self.nodes[each]
            for each in neighbours(start, "DESCRIPTION")
            if each.label == "Description"
        ]
        return texts[0].get("description") if texts else None


def modelled(kind: str, properties: Mapping[str, Any]) -> Properties:
    """The properties of a node or relation that Lumos reads and writes."""
    known = MODELLED.get(kind, set())
    return {
        key: value
        for key, value in properties.items()
        if key in known or (key.startswith("lumos_") and key != "lumos_reference")
    }


class Graph(ABC):
    """The storage of nodes and relations."""

    @abstractmethod
    def keys(self, label: str) -> Collection[str]:
        """The keys of all nodes with a label, except those that are only targets of references."""

    @abstractmethod
    def read(self, nodes: Sequence[Node]) -> dict[Node, Fragment]:
        """The fragments of the nodes that exist."""

    @abstractmethod
    def write(
        self, wanted: Mapping[Node, Fragment | None], before: Mapping[Node, Fragment]
    ) -> set[Node]:
        """Replace fragments atomically; a fragment that is None is deleted.

        Changes by others since `before` was read are preserved. Returns the nodes of the fragments
        that changed.
        """


# Without dots, because databuilder writes the names of properties into Cypher unquoted.
_PROPERTY: Final = re.compile(r"lumos_(?P<name>[a-z_]+?)(?:_(?P<part>\d+))?")
_MAX_TEXT_LENGTH: Final = 500_000


def pack_fields(exact: Any, visible: Any) -> tuple[Properties, Packed]:
    """The properties for fields that `visible` lacks, and how each aspect is stored."""
    packed = pack(exact, visible, max_length=_MAX_TEXT_LENGTH)
    return {key.replace(".", "_"): text for key, text in packed.properties.items()}, packed


def unpack_fields(properties: Mapping[str, Any], type: Any = CatalogEntry) -> dict[str, Any]:
    """The fields that are packed into the properties of a node."""
    dotted = {
        ".".join(filter(None, ("lumos", match["name"], match["part"]))): text
        for key, text in properties.items()
        if isinstance(text, str) and (match := _PROPERTY.fullmatch(key))
    }
    return unpack(dotted, type).exact
