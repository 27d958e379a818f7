"""The short aspects: names and descriptions, properties, tags and terms, owners, domains, views."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from lumos.catalogs.carried_properties import unpacked
from lumos.catalogs.datahub_model.lenses import STAMP, State, changed, listed, values
from lumos.catalogs.datahub_model.names import entity_name, entity_urn
from lumos.model.catalog import Timestamps
from lumos.model.dataset import Definition, Documentation, Governance, Owner, Ownership, Properties

PROPERTIES: Final = "datasetProperties"
EDITED: Final = "editableDatasetProperties"
STATUS: Final = "status"
STRUCTURED: Final = "structuredProperties"
_STRUCTURED_KEY: Final = "urn:li:structuredProperty:"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_OWNER_TYPES: Final = frozenset(
    {"TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "NONE", "DEVELOPER", "DATAOWNER",
     "DELEGATE", "PRODUCER", "CONSUMER", "STAKEHOLDER"}
)  # fmt: skip
# DataHub has entities for these, and shows them by the entity.
_SYSTEM: Final = "__system__"
_SYSTEM_TYPES: Final = ("TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "NONE")


def read_name(state: State, otherwise: str) -> str:
    name = (state.get(PROPERTIES) or {}).get("name")
    return otherwise if name is None else str(name)


def write_name(state: State, name: str) -> None:
    """Says the name; one that JSON cannot say is that of the URN, or Lumos packs it."""
    changed(state, PROPERTIES, name=name if _is_sayable(name) else None)


def read_custom(state: State) -> dict[str, str]:
    """The free-form properties, ours among them."""
    return (state.get(PROPERTIES) or {}).get("customProperties") or {}


def write_custom(state: State, properties: dict[str, str]) -> None:
    if properties != read_custom(state):
        changed(state, PROPERTIES, customProperties=properties)


def without_packed(body: Any) -> Any:
    """The aspect of properties without those that Lumos packed aspects into."""
    custom = body.get("customProperties") or {}
    own = unpacked(custom)
    return body if own == custom else {**body, "customProperties": own}


def read_structured(state: State) -> Properties:
    """Structured properties, each under its URN."""
    items = (state.get(STRUCTURED) or {}).get("properties") or ()
    return {item["propertyUrn"]: _text(item.get("values") or ()) for item in items}


def write_structured(state: State, properties: Properties) -> None:
    """Assigns what is asked for; an assignment that says it already stays as it is."""
    # A snapshot sorts properties, so another order has to be carried.
    wanted = {key: properties[key] for key in sorted(properties) if is_structured(key)}
    if wanted == read_structured(state):
        return
    body = state.get(STRUCTURED) or {}
    items = listed(
        body.get("properties") or (),
        lambda item: (item["propertyUrn"], _text(item.get("values") or ())),
        wanted.items(),
        lambda pair: {"propertyUrn": pair[0], "values": _values(pair[1])},
    )
    state[STRUCTURED] = {**body, "properties": items}


def is_structured(key: str) -> bool:
    return key.startswith(_STRUCTURED_KEY) and key != _STRUCTURED_KEY


def read_documentation(state: State) -> Documentation | None:
    """What people wrote goes before what a source said."""
    description = (state.get(EDITED) or {}).get("description")
    if description is None:
        description = (state.get(PROPERTIES) or {}).get("description")
    domain = read_domain(state)
    if description is None and domain is None:
        return None
    return Documentation(description=description, domain=domain)


def write_documentation(state: State, documentation: Documentation | None) -> None:
    wanted = documentation or Documentation()
    now = read_documentation(state) or Documentation()
    if wanted.description != now.description:
        if (state.get(EDITED) or {}).get("description") is not None:
            changed(state, EDITED, description=None)
        changed(state, PROPERTIES, description=wanted.description)
    if wanted.domain != now.domain:
        write_domain(state, wanted.domain)


def read_domain(state: State) -> str | None:
    urns = (state.get("domains") or {}).get("domains") or ()
    return next(iter(values(urns, lambda urn: entity_name("domain", urn))), None)


def write_domain(state: State, domain: str | None) -> None:
    """Lumos knows of one domain; others that are there stay with it, and go with it."""
    if not domain:
        state.pop("domains", None)
        return
    _, *others = (state.get("domains") or {}).get("domains") or [None]
    urns = [entity_urn("domain", domain), *others]
    changed(state, "domains", domains=urns, domainAssociations=None)


def read_governance(state: State) -> Governance | None:
    if "globalTags" not in state and "glossaryTerms" not in state:
        return None
    return Governance(tags=_tags(state), terms=_terms(state))


def write_governance(state: State, governance: Governance | None) -> None:
    if governance is None:
        state.pop("globalTags", None)
        state.pop("glossaryTerms", None)
        return
    if "globalTags" not in state or _tags(state) != governance.tags:
        items = (state.get("globalTags") or {}).get("tags") or ()
        tags = listed(items, _tag, governance.tags, lambda tag: {"tag": entity_urn("tag", tag)})
        changed(state, "globalTags", tags=tags)
    if _terms(state) != governance.terms:
        items = (state.get("glossaryTerms") or {}).get("terms") or ()
        terms = listed(
            items, _term, governance.terms, lambda term: {"urn": entity_urn("glossaryTerm", term)}
        )
        changed(state, "glossaryTerms", {"auditStamp": STAMP}, terms=terms)


def read_ownership(state: State) -> Ownership | None:
    if "ownership" not in state:
        return None
    return Ownership(owners=values(state["ownership"].get("owners") or (), _owner))


def write_ownership(state: State, ownership: Ownership | None) -> None:
    if ownership is None:
        state.pop("ownership", None)
        return
    items = (state.get("ownership") or {}).get("owners") or ()
    owners = listed(items, _owner, ownership.owners, _owner_item)
    changed(state, "ownership", {"lastModified": STAMP}, owners=owners)
    if "ownerTypes" in state["ownership"]:
        # DataHub derives this from the list; what is stale there would contradict it.
        changed(state, "ownership", ownerTypes=_owner_types(owners))


def read_definition(state: State) -> Definition | None:
    view = state.get("viewProperties")
    if view is None:
        return None
    return Definition(sql=view.get("viewLogic", ""), dialect=view.get("viewLanguage", ""))


def write_definition(state: State, definition: Definition | None) -> None:
    if definition is None:
        state.pop("viewProperties", None)
        return
    changed(
        state,
        "viewProperties",
        {"materialized": False},
        viewLogic=definition.sql,
        viewLanguage=definition.dialect,
        formattedViewLogic=None,
    )


def read_timestamps(state: State) -> Timestamps | None:
    body = state.get(PROPERTIES) or {}
    created, modified = (_moment(body.get(key)) for key in ("created", "lastModified"))
    if created is None and modified is None:
        return None
    return Timestamps(created=created, last_modified=modified)


def write_timestamps(state: State, timestamps: Timestamps | None) -> None:
    wanted = timestamps or Timestamps()
    now = read_timestamps(state) or Timestamps()
    if wanted.created != now.created:
        changed(state, PROPERTIES, created=_stamp(wanted.created))
    if wanted.last_modified != now.last_modified:
        changed(state, PROPERTIES, lastModified=_stamp(wanted.last_modified))


def read_deleted(state: State) -> bool:
    return bool((state.get(STATUS) or {}).get("removed"))


def write_deleted(state: State, deleted: bool) -> None:
    if deleted != read_deleted(state):
        changed(state, STATUS, removed=deleted)


def _tags(state: State) -> tuple[str, ...]:
    return values((state.get("globalTags") or {}).get("tags") or (), _tag)


def _terms(state: State) -> tuple[str, ...]:
    return values((state.get("glossaryTerms") or {}).get("terms") or (), _term)


def _tag(item: Any) -> str | None:
    return entity_name("tag", item.get("tag", ""))


def _term(item: Any) -> str | None:
    return entity_name("glossaryTerm", item.get("urn", ""))


def _owner(item: Any) -> Owner | None:
    urn = item.get("owner", "")
    user, group = entity_name("corpuser", urn), entity_name("corpGroup", urn)
    if user is None and group is None:
        return None
    return Owner(
        name=user if group is None else group,  # type: ignore[arg-type]
        kind="user" if group is None else "group",
        type=_owner_type(item),
    )


def _owner_type(item: Any) -> str:
    name = entity_name("ownershipType", item.get("typeUrn") or "")
    if name is None:
        return str(item.get("type", "NONE"))
    return name.removeprefix(_SYSTEM).upper() if name.startswith(_SYSTEM) else name


def _owner_item(owner: Owner) -> dict[str, Any]:
    urn = entity_urn("corpuser" if owner.kind == "user" else "corpGroup", owner.name)
    if owner.type in _SYSTEM_TYPES:
        type_urn = entity_urn("ownershipType", f"{_SYSTEM}{owner.type.lower()}")
        return {"owner": urn, "type": owner.type, "typeUrn": type_urn}
    if owner.type in _OWNER_TYPES:
        return {"owner": urn, "type": owner.type}
    return {"owner": urn, "type": "CUSTOM", "typeUrn": entity_urn("ownershipType", owner.type)}


def _owner_types(owners: list[Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in owners:
        if item.get("typeUrn"):
            found.setdefault(item["typeUrn"], []).append(item["owner"])
    return found


def _is_sayable(text: str) -> bool:
    """Whether text is Unicode; names of files need not be."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _text(items: Any) -> str:
    """The values of a structured property: a lone text as it is, others as a JSON list."""
    plain = [_plain(item) for item in items]
    if len(plain) == 1 and isinstance(plain[0], str) and not plain[0].startswith("["):
        return plain[0]
    return msgspec.json.encode(plain).decode()


def _values(text: str) -> list[dict[str, Any]]:
    try:
        plain = msgspec.json.decode(text, type=list[str | float]) if text[:1] == "[" else [text]
    except msgspec.MsgspecError:
        plain = [text]
    return [{"string" if isinstance(each, str) else "double": each} for each in plain]


def _plain(item: Any) -> Any:
    return next(iter(item.values()), None) if isinstance(item, dict) else item


def _moment(stamp: Any) -> datetime | None:
    time = stamp.get("time") if isinstance(stamp, dict) else None
    try:
        return None if time is None else _EPOCH + time * _MILLISECOND
    except OverflowError:
        # Beyond the calendar; it stays in the file as it is.
        return None


def _stamp(moment: datetime | None) -> dict[str, Any] | None:
    return None if moment is None else {"time": (moment - _EPOCH) // _MILLISECOND}
