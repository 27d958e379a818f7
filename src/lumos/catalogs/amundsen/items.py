"""Users, tags and dashboards as nodes of Amundsen; other items as nodes labelled `LumosItem`."""

from typing import Any, Final

import msgspec

from lumos.catalogs.amundsen import graph, names
from lumos.catalogs.amundsen.graph import (
    DASHBOARD,
    ITEM,
    KIND,
    TABLE,
    TAG,
    USER,
    Fragment,
    Node,
    pack_fields,
    unpack_fields,
)
from lumos.catalogs.interface import CatalogItem, item_key
from lumos.catalogs.nearest_kinds import nearest_urn, original_urn, shared_kind
from lumos.catalogs.packed_properties import restore
from lumos.errors import CatalogError
from lumos.model import catalog as model
from lumos.model.catalog import CatalogEntity
from lumos.model.dataset import Owner
from lumos.model.json_codec import from_json, to_json

LABELS: Final = (USER, TAG, DASHBOARD, ITEM)
_TYPE_BY_KIND: Final[dict[str, Any]] = {
    "entity": CatalogEntity, "group": model.Group, "job": model.Job, "term": model.GlossaryTerm,
    "user": model.User,
}  # fmt: skip
_NATIVE: Final = frozenset(
    {"display_name", "description", "email", "title", "active", "groups", "owners", "tags",
     "references", "properties"}
)  # fmt: skip
# The prefix of the URN of a dashboard whose key does not consist of a tool and an id.
_NATIVE_URN_PREFIX: Final = f"{KIND}:dashboard:"
_URL: Final = "dashboard_url"


def item_node(type: type[CatalogItem], key: str) -> Node:
    """The node in which an item is stored."""
    if type is model.User and key:
        return Node(USER, key)
    parts = model.entity_id(key) if type is CatalogEntity else None
    if parts is not None:
        if len(parts) == 1 and parts[0] and key == model.entity_urn("tag", *parts):
            return Node(TAG, parts[0])
        if len(parts) == 2 and key == model.entity_urn("dashboard", *parts):
            return Node(DASHBOARD, names.dashboard_key(*parts))
    if type is CatalogEntity and key.startswith(_NATIVE_URN_PREFIX):
        node = Node(DASHBOARD, key.removeprefix(_NATIVE_URN_PREFIX))
        if _dashboard_urn(node.key) == key:
            return node
    nearest = nearest_urn(key, ("dashboard",)) if type is CatalogEntity else None
    if nearest is not None:
        return Node(DASHBOARD, names.dashboard_key(*(model.entity_id(nearest) or ())))
    return generic_node(type, key)


def generic_node(type: type[CatalogItem], key: str) -> Node:
    """The node of an item that Amundsen has no label for."""
    (kind,) = (kind for kind, each in _TYPE_BY_KIND.items() if each is type)
    return Node(ITEM, f"{kind}:{key}")


def render_item(item: CatalogItem) -> Fragment:
    """Encode an item as a fragment of the graph."""
    node = item_node(type(item), item_key(item))
    if node.label == ITEM:
        return Fragment.of(node, {"lumos_item": to_json(item).decode()})
    fragment = _encode(item)
    properties, _ = pack_fields(item, _decode(node, fragment))
    fragment.nodes[node].update(properties)
    return fragment


def item_in(node: Node, fragment: Fragment) -> CatalogItem:
    """Decode the item of a node."""
    properties = fragment.nodes[node]
    if node.label == ITEM:
        try:
            type = _TYPE_BY_KIND[node.key.partition(":")[0]]
            item: CatalogItem = from_json(str(properties["lumos_item"]).encode(), type)
        except (KeyError, msgspec.MsgspecError) as problem:
            raise CatalogError(
                f"Cannot decode the {ITEM} node '{node.key}': {problem}", platform=KIND
            ) from None
        return item
    visible = _decode(node, fragment)
    packed = unpack_fields(properties, _TYPE_BY_KIND["user" if node.label == USER else "entity"])
    return restore(visible, packed, native=_NATIVE, as_shown=_round_trip)


def _round_trip(item: CatalogItem) -> CatalogItem:
    return _decode(item_node(type(item), item_key(item)), _encode(item))


def _encode(item: CatalogItem) -> Fragment:
    node = item_node(type(item), item_key(item))
    if isinstance(item, model.User):
        texts = {"email": item.email, "full_name": item.display_name, "role_name": item.title,
                 "team_name": next(iter(item.groups), None)}  # fmt: skip
        known = {parts: text for parts, text in texts.items() if text}
        return Fragment.of(node, {**node.reference, **known, "is_active": item.active})
    if node.label == TAG:
        return Fragment.of(node, {**node.reference, "lumos_item": "tag"})
    assert isinstance(item, CatalogEntity), f"no native node for {type(item).__name__}"
    parts = names.parse_key(node.key)
    cluster, group = Node("Cluster", parts.cluster_key), Node("Dashboardgroup", parts.schema_key)
    fragment = Fragment.of(node, {"name": item.display_name or parts.table})
    if item.properties.get(_URL):
        fragment.nodes[node][_URL] = item.properties[_URL]
    fragment.references.update({group: {"name": parts.schema}, cluster: {"name": parts.cluster}})
    fragment.refer(node, "DASHBOARD_OF", group)
    fragment.describe(node, item.description)
    for owner in item.owners:
        fragment.refer(node, "OWNER", Node(USER, owner.name))
    for tag in item.tags:
        fragment.refer(node, "TAGGED_BY", Node(TAG, tag))
    for key in filter(None, map(names.table_key, item.references.get("datasets", ()))):
        fragment.refer(node, "DASHBOARD_WITH_TABLE", Node(TABLE, key))
    return fragment._replace(parents=(graph.relation(group, "DASHBOARD_GROUP_OF", cluster),))


def _dashboard_urn(key: str) -> str:
    parts = names.dashboard_id(key)
    if parts is None:
        return f"{_NATIVE_URN_PREFIX}{key}"
    urn = model.entity_urn("dashboard", *parts)
    original = original_urn(urn)
    is_stored_here = original and item_node(CatalogEntity, original) == Node(DASHBOARD, key)
    return original if original and is_stored_here else urn


def _decode(node: Node, fragment: Fragment) -> CatalogItem:
    properties, neighbours = fragment.nodes[node], fragment.neighbours()
    if node.label == USER:
        email, team = properties.get("email"), properties.get("team_name")
        return model.User(
            name=node.key,
            display_name=properties.get("full_name") or None,
            email=email if email != node.key else None,
            title=properties.get("role_name") or None,
            active=properties.get("is_active") in (True, "True", "true"),
            groups=(team,) if team else (),
        )
    if node.label == TAG:
        return CatalogEntity(urn=model.entity_urn("tag", node.key))
    datasets = tuple(
        names.dataset_urn(each.key) for each in neighbours(node, "DASHBOARD_WITH_TABLE")
    )
    name, urn = properties["name"], _dashboard_urn(node.key)
    return CatalogEntity(
        urn=urn,
        kind=shared_kind(urn),
        display_name=name if name != names.parse_key(node.key).table else None,
        description=fragment.description(neighbours, node),
        owners=tuple(Owner(name=each.key) for each in neighbours(node, "OWNER")),
        tags=tuple(each.key for each in neighbours(node, "TAGGED_BY")),
        references={"datasets": datasets} if datasets else {},
        properties={_URL: properties[_URL]} if properties.get(_URL) else {},
    )
