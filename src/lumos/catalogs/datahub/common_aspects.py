"""Reads and writes the common aspects: descriptions, properties, tags, owners, domains, views."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub.aspects import STAMP, Aspects, read_list, update_aspect, update_list
from lumos.catalogs.datahub.names import entity_name, entity_urn
from lumos.model.catalog import Timestamps
from lumos.model.dataset import Definition, Documentation, Governance, Owner, Ownership, Properties

PROPERTIES: Final = "datasetProperties"
EDITED: Final = "editableDatasetProperties"
STATUS: Final = "status"
STRUCTURED: Final = "structuredProperties"
_STRUCTURED_URN_PREFIX: Final = "urn:li:structuredProperty:"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_OWNER_TYPES: Final = frozenset(
    {"TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "NONE", "DEVELOPER", "DATAOWNER",
     "DELEGATE", "PRODUCER", "CONSUMER", "STAKEHOLDER"}
)  # fmt: skip
# DataHub has entities for these ownership types, and shows their names.
_SYSTEM: Final = "__system__"
_SYSTEM_TYPES: Final = ("TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "NONE")


class DataHubLabels(NamedTuple):
    """How DataHub stores tags or terms: their aspect, the list in it, and the key of an item.

    `type` is the type of their entities; `required_keys` are the other keys of a new aspect.
    """

    aspect: str
    list: str
    key: str
    type: str
    required_keys: Mapping[str, Any]


TAGS: Final = DataHubLabels("globalTags", "tags", "tag", "tag", {})
TERMS: Final = DataHubLabels("glossaryTerms", "terms", "urn", "glossaryTerm", {"auditStamp": STAMP})


def read_labels(kind: DataHubLabels, holder: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels of a dataset, entity or schema row, or of an edit of a row."""
    if not (body := holder.get(kind.aspect)):
        return ()
    return read_list(body.get(kind.list) or (), lambda item: _label_name(kind, item))


def with_labels(
    kind: DataHubLabels, holder: dict[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Replace the labels of a dataset, entity or schema row."""
    if not names and kind.aspect not in holder:
        return holder
    old = holder.get(kind.aspect) or kind.required_keys
    items = update_list(
        old.get(kind.list) or (),
        lambda item: _label_name(kind, item),
        names,
        lambda name: {kind.key: entity_urn(kind.type, name)},
    )
    rest = {key: value for key, value in holder.items() if key != kind.aspect}
    return {**rest, kind.aspect: {**old, kind.list: items}} if items else rest


def _label_name(kind: DataHubLabels, item: Any) -> str | None:
    return entity_name(kind.type, item.get(kind.key, ""))


def read_name(aspects: Aspects, default: str) -> str:
    name = (aspects.get(PROPERTIES) or {}).get("name")
    return default if name is None else str(name)


def write_name(aspects: Aspects, name: str) -> None:
    """Write the name, unless it is invalid Unicode; then it is only stored in a property."""
    is_valid = not any("\ud800" <= character <= "\udfff" for character in name)
    update_aspect(aspects, PROPERTIES, name=name if is_valid else None)


def read_structured(aspects: Aspects) -> Properties:
    items = (aspects.get(STRUCTURED) or {}).get("properties") or ()
    return {item["propertyUrn"]: _structured_text(item.get("values") or ()) for item in items}


def write_structured(aspects: Aspects, properties: Properties) -> None:
    """Write structured properties without changing those that are equal."""
    # Snapshots sort properties; if the original order differs, it is in `raw`.
    wanted = {key: properties[key] for key in sorted(properties) if is_structured(key)}
    if wanted == read_structured(aspects):
        return
    body = aspects.get(STRUCTURED) or {}
    items = update_list(
        body.get("properties") or (),
        lambda item: (item["propertyUrn"], _structured_text(item.get("values") or ())),
        wanted.items(),
        lambda pair: {"propertyUrn": pair[0], "values": _structured_values(pair[1])},
    )
    aspects[STRUCTURED] = {**body, "properties": items}


def is_structured(key: str) -> bool:
    return key.startswith(_STRUCTURED_URN_PREFIX) and key != _STRUCTURED_URN_PREFIX


def read_documentation(aspects: Aspects) -> Documentation | None:
    """Read the description and the domain; a description that users entered takes precedence."""
    description = (aspects.get(EDITED) or {}).get("description")
    if description is None:
        description = (aspects.get(PROPERTIES) or {}).get("description")
    domain = read_domain(aspects)
    if description is None and domain is None:
        return None
    return Documentation(description=description, domain=domain)


def write_documentation(aspects: Aspects, documentation: Documentation | None) -> None:
    wanted = documentation or Documentation()
    current = read_documentation(aspects) or Documentation()
    if wanted.description != current.description:
        if (aspects.get(EDITED) or {}).get("description") is not None:
            update_aspect(aspects, EDITED, description=None)
        update_aspect(aspects, PROPERTIES, description=wanted.description)
    if wanted.domain != current.domain:
        write_domain(aspects, wanted.domain)


def read_domain(aspects: Aspects) -> str | None:
    urns = (aspects.get("domains") or {}).get("domains") or ()
    return next(iter(read_list(urns, lambda urn: entity_name("domain", urn))), None)


def write_domain(aspects: Aspects, domain: str | None) -> None:
    """Replace the first domain without changing the others; None removes all domains."""
    if not domain:
        aspects.pop("domains", None)
        return
    _, *others = (aspects.get("domains") or {}).get("domains") or [None]
    urns = [entity_urn("domain", domain), *others]
    update_aspect(aspects, "domains", domains=urns, domainAssociations=None)


def read_governance(aspects: Aspects) -> Governance | None:
    if TAGS.aspect not in aspects and TERMS.aspect not in aspects:
        return None
    return Governance(tags=read_labels(TAGS, aspects), terms=read_labels(TERMS, aspects))


def write_governance(aspects: Aspects, governance: Governance | None) -> None:
    wanted = Governance() if governance is None else governance
    write_labels(TAGS, aspects, wanted.tags)
    write_labels(TERMS, aspects, wanted.terms)
    if governance is None:
        aspects.pop(TAGS.aspect, None)
        aspects.pop(TERMS.aspect, None)
    elif TAGS.aspect not in aspects:
        # An empty aspect means that there are no tags and terms.
        aspects[TAGS.aspect] = {TAGS.list: []}


def write_labels(kind: DataHubLabels, aspects: Aspects, names: Sequence[str]) -> None:
    """Replace the labels of a dataset or entity in its aspects."""
    if read_labels(kind, aspects) != tuple(names):
        changed = with_labels(kind, aspects, names).get(kind.aspect)
        if changed is None:
            aspects.pop(kind.aspect, None)
        else:
            aspects[kind.aspect] = changed


def read_ownership(aspects: Aspects) -> Ownership | None:
    if "ownership" not in aspects:
        return None
    return Ownership(owners=read_list(aspects["ownership"].get("owners") or (), _read_owner))


def write_ownership(aspects: Aspects, ownership: Ownership | None) -> None:
    if ownership is None:
        aspects.pop("ownership", None)
        return
    items = (aspects.get("ownership") or {}).get("owners") or ()
    owners = update_list(items, _read_owner, ownership.owners, _owner_item)
    update_aspect(aspects, "ownership", {"lastModified": STAMP}, owners=owners)
    if "ownerTypes" in aspects["ownership"]:
        # DataHub derives this key from the list; keep the two consistent.
        owner_types: dict[str, list[str]] = {}
        for item in owners:
            if item.get("typeUrn"):
                owner_types.setdefault(item["typeUrn"], []).append(item["owner"])
        update_aspect(aspects, "ownership", ownerTypes=owner_types)


def read_definition(aspects: Aspects) -> Definition | None:
    view = aspects.get("viewProperties")
    if view is None:
        return None
    return Definition(sql=view.get("viewLogic", ""), dialect=view.get("viewLanguage", ""))


def write_definition(aspects: Aspects, definition: Definition | None) -> None:
    if definition is None:
        aspects.pop("viewProperties", None)
        return
    update_aspect(
        aspects,
        "viewProperties",
        {"materialized": False},
        viewLogic=definition.sql,
        viewLanguage=definition.dialect,
        formattedViewLogic=None,
    )


def read_timestamps(aspects: Aspects) -> Timestamps | None:
    body = aspects.get(PROPERTIES) or {}
    created, modified = (_read_time(body.get(key)) for key in ("created", "lastModified"))
    if created is None and modified is None:
        return None
    return Timestamps(created=created, last_modified=modified)


def write_timestamps(aspects: Aspects, timestamps: Timestamps | None) -> None:
    wanted = timestamps or Timestamps()
    current = read_timestamps(aspects) or Timestamps()
    if wanted.created != current.created:
        update_aspect(aspects, PROPERTIES, created=_audit_stamp(wanted.created))
    if wanted.last_modified != current.last_modified:
        update_aspect(aspects, PROPERTIES, lastModified=_audit_stamp(wanted.last_modified))


def read_deleted(aspects: Aspects) -> bool:
    return bool((aspects.get(STATUS) or {}).get("removed"))


def write_deleted(aspects: Aspects, deleted: bool) -> None:
    if deleted != read_deleted(aspects):
        update_aspect(aspects, STATUS, removed=deleted)


def _read_owner(item: Any) -> Owner | None:
    urn = item.get("owner", "")
    user, group = entity_name("corpuser", urn), entity_name("corpGroup", urn)
    if user is None and group is None:
        return None
    type = entity_name("ownershipType", item.get("typeUrn") or "")
    if type is None:
        type = str(item.get("type", "NONE"))
    elif type.startswith(_SYSTEM):
        type = type.removeprefix(_SYSTEM).upper()
    return Owner(
        name=user if group is None else group,  # type: ignore[arg-type]
        kind="user" if group is None else "group",
        type=type,
    )


def _owner_item(owner: Owner) -> dict[str, Any]:
    urn = entity_urn("corpuser" if owner.kind == "user" else "corpGroup", owner.name)
    if owner.type in _SYSTEM_TYPES:
        type_urn = entity_urn("ownershipType", f"{_SYSTEM}{owner.type.lower()}")
        return {"owner": urn, "type": owner.type, "typeUrn": type_urn}
    if owner.type in _OWNER_TYPES:
        return {"owner": urn, "type": owner.type}
    return {"owner": urn, "type": "CUSTOM", "typeUrn": entity_urn("ownershipType", owner.type)}


def _structured_text(items: Any) -> str:
    """The values of a structured property: a single text unchanged, others as a JSON list."""
    plain = [next(iter(item.values()), None) if isinstance(item, dict) else item for item in items]
    if len(plain) == 1 and isinstance(plain[0], str) and not plain[0].startswith("["):
        return plain[0]
    return msgspec.json.encode(plain).decode()


def _structured_values(text: str) -> list[dict[str, Any]]:
    try:
        plain = msgspec.json.decode(text, type=list[str | float]) if text[:1] == "[" else [text]
    except msgspec.MsgspecError:
        plain = [text]
    return [{"string" if isinstance(each, str) else "double": each} for each in plain]


def _read_time(stamp: Any) -> datetime | None:
    time = stamp.get("time") if isinstance(stamp, dict) else None
    try:
        return None if time is None else _EPOCH + time * _MILLISECOND
    except OverflowError:
        # Not a valid date; the aspect stays in `raw`.
        return None


def _audit_stamp(moment: datetime | None) -> dict[str, Any] | None:
    return None if moment is None else {"time": (moment - _EPOCH) // _MILLISECOND}
