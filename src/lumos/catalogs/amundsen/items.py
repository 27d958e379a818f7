"""Users, tags and dashboards as nodes of Amundsen, and other items as nodes of their own."""

from typing import Any, Final

import msgspec

from lumos.catalogs.amundsen import graph, names
from lumos.catalogs.amundsen.carried import carried, carry
from lumos.catalogs.amundsen.graph import DASHBOARD, ITEM, KIND, TABLE, TAG, USER, Fragment, Node
from lumos.catalogs.interface import CatalogItem
from lumos.catalogs.packed_properties import restore
from lumos.errors import CatalogError
from lumos.model import catalog as model
from lumos.model.catalog import CatalogEntity
from lumos.model.dataset import Owner
from lumos.model.json_codec import from_json, to_json

LABELS: Final = (USER, TAG, DASHBOARD, ITEM)
_WORDS: Final[dict[str, Any]] = {
    "entity": CatalogEntity, "group": model.Group, "job": model.Job, "term": model.GlossaryTerm,
    "user": model.User,
}  # fmt: skip
_NATIVE: Final = frozenset(
    {"display_name", "description", "email", "title", "active", "groups", "owners", "tags",
     "references", "properties"}
)  # fmt: skip
# A dashboard whose key Lumos cannot name in other catalogs.
_OWN_URN: Final = f"{KIND}:dashboard:"
_URL: Final = "dashboard_url"


def item_node(type: type[CatalogItem], key: str) -> Node:
    """The node of an item."""
    if type is model.User and key:
        return Node(USER, key)
    parts = model.entity_id(key) if type is CatalogEntity else None
    if parts is not None:
        if len(parts) == 1 and parts[0] and key == model.entity_urn("tag", *parts):
            return Node(TAG, parts[0])
        if len(parts) == 2 and key == model.entity_urn("dashboard", *parts):
            return Node(DASHBOARD, names.dashboard_key(*parts))
    if type is CatalogEntity and key.startswith(_OWN_URN):
        own = Node(DASHBOARD, key.removeprefix(_OWN_URN))
        if _dashboard_urn(own.key) == key:
            return own
    (word,) = (word for word, each in _WORDS.items() if each is type)
    return Node(ITEM, f"{word}:{key}")


def render_item(item: CatalogItem) -> Fragment:
    """The fragment that an item is written as."""
    node = item_node(type(item), item_key(item))
    if node.label == ITEM:
        return Fragment.of(node, {"lumos_item": to_json(item).decode()})
    fragment = _native(item)
    properties, _ = carry(item, _shown(node, fragment))
    fragment.nodes[node].update(properties)
    return fragment


def item_in(node: Node, fragment: Fragment) -> CatalogItem:
    """The item that a fragment holds."""
    properties = fragment.nodes[node]
    if node.label == ITEM:
        try:
            type = _WORDS[node.key.partition(":")[0]]
            item: CatalogItem = from_json(str(properties["lumos_item"]).encode(), type)
        except (KeyError, msgspec.MsgspecError) as problem:
            raise CatalogError(f"The node {ITEM} '{node.key}': {problem}", platform=KIND) from None
        return item
    shown = _shown(node, fragment)
    exact = carried(properties, _WORDS["user" if node.label == USER else "entity"])
    return restore(shown, exact, native=_NATIVE, as_shown=_as_shown)


def item_key(item: CatalogItem) -> str:
    return item.urn if isinstance(item, model.Job | CatalogEntity) else item.name


def _as_shown(item: CatalogItem) -> CatalogItem:
    return _shown(item_node(type(item), item_key(item)), _native(item))


def _native(item: CatalogItem) -> Fragment:
    node = item_node(type(item), item_key(item))
    if isinstance(item, model.User):
        texts = {"email": item.email, "full_name": item.display_name, "role_name": item.title,
                 "team_name": next(iter(item.groups), None)}  # fmt: skip
        known = {name: text for name, text in texts.items() if text}
        return Fragment.of(node, {**node.reference, **known, "is_active": item.active})
    if node.label == TAG:
        return Fragment.of(node, {**node.reference, "lumos_item": "tag"})
    assert isinstance(item, CatalogEntity), "others are not native"
    name = names.table_name(node.key)
    cluster, group = Node("Cluster", name.cluster_key), Node("Dashboardgroup", name.schema_key)
    part = Fragment.of(node, {"name": item.display_name or name.table})
    if item.properties.get(_URL):
        part.nodes[node][_URL] = item.properties[_URL]
    part.references.update({group: {"name": name.schema}, cluster: {"name": name.cluster}})
    part.refer(node, "DASHBOARD_OF", group)
    part.describe(node, item.description)
    for owner in item.owners:
        part.refer(node, "OWNER", Node(USER, owner.name))
    for tag in item.tags:
        part.refer(node, "TAGGED_BY", Node(TAG, tag))
    for key in filter(None, map(names.table_key, item.references.get("datasets", ()))):
        part.refer(node, "DASHBOARD_WITH_TABLE", Node(TABLE, key))
    return part._replace(chain=(graph.relation(group, "DASHBOARD_GROUP_OF", cluster),))


def _dashboard_urn(key: str) -> str:
    parts = names.dashboard_id(key)
    return f"{_OWN_URN}{key}" if parts is None else model.entity_urn("dashboard", *parts)


def _shown(node: Node, part: Fragment) -> CatalogItem:
    properties, ends = part.nodes[node], part.ends()
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
    datasets = tuple(names.dataset_urn(each.key) for each in ends(node, "DASHBOARD_WITH_TABLE"))
    name = properties["name"]
    return CatalogEntity(
        urn=_dashboard_urn(node.key),
        display_name=name if name != names.table_name(node.key).table else None,
        description=part.description(ends, node),
        owners=tuple(Owner(name=each.key) for each in ends(node, "OWNER")),
        tags=tuple(each.key for each in ends(node, "TAGGED_BY")),
        references={"datasets": datasets} if datasets else {},
        properties={_URL: properties[_URL]} if properties.get(_URL) else {},
    )
