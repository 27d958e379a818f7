"""What people read of things that are no datasets: tags, domains, flows and their jobs.

Lumos has no kind for them, and carries them aspect by aspect. Other catalogs have, so their titles
and words can be shown there, and what is changed there comes back into the aspects.
"""

from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub_model.extras import CATALOG, carried_in, folded, plain, stated
from lumos.catalogs.datahub_model.names import entity_name
from lumos.catalogs.datahub_model.shapes import OddAspect
from lumos.model.catalog import CatalogEntity


class DataHubWords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people read of something: its title, what it is, its colour and its page elsewhere."""

    title: str | None = None
    description: str | None = None
    colour: str | None = None
    url: str | None = None


class _Place(NamedTuple):
    """Where a type of entity has its words: an aspect and its keys.

    What people typed lies apart from that for some types, and goes before it.
    """

    aspect: str
    keys: dict[str, str]
    typed: str | None = None


_FLOW: Final = {"title": "name", "description": "description", "url": "externalUrl"}
_PLACES: Final = {
    "tag": _Place(
        "tagProperties", {"title": "name", "description": "description", "colour": "colorHex"}
    ),
    "domain": _Place("domainProperties", {"title": "name", "description": "description"}),
    "dataFlow": _Place("dataFlowInfo", _FLOW, "editableDataFlowProperties"),
    "dataJob": _Place("dataJobInfo", _FLOW, "editableDataJobProperties"),
}


def type_of(urn: str) -> str | None:
    """The type of an entity whose words are known here, or nothing."""
    return next((type for type in _PLACES if entity_name(type, urn) is not None), None)


def words_of(other: CatalogEntity) -> DataHubWords:
    """What DataHub says of such an entity."""
    place = _place(other)
    body = folded_aspect(other, place.aspect)
    said = {name: text_in(body, key) for name, key in place.keys.items()}
    if place.typed is not None:
        typed = text_in(folded_aspect(other, place.typed), "description")
        said["description"] = typed or said["description"]
    return DataHubWords(**said)


def with_words(other: CatalogEntity, words: DataHubWords) -> CatalogEntity:
    """The entity when it says these words instead; what it says beside them stays."""
    if not _is_readable(other):
        return other
    place, then = _place(other), words_of(other)
    changed = {
        name: getattr(words, name)
        for name in place.keys
        if getattr(words, name) != getattr(then, name)
    }
    if place.typed is not None and "description" in changed:
        typed = folded_aspect(other, place.typed)
        if text_in(typed, "description") is not None:
            typed_words = {"description": changed.pop("description")}
            other = with_aspect(other, place.typed, typed_words)
    if "title" in changed:
        # Each of them must have one.
        changed["title"] = words.title or then.title or ""
    said = {place.keys[name]: value for name, value in changed.items()}
    return with_aspect(other, place.aspect, said) if said else other


def folded_aspect(other: CatalogEntity, aspect: str) -> dict[str, Any]:
    """An aspect of something that was brought from DataHub; empty where it has none."""
    if not _is_readable(other):
        return {}
    body = folded(carried_in(other.raw).get(aspect, [])).get(aspect)
    return body if isinstance(body, dict) else {}


def with_aspect(other: CatalogEntity, aspect: str, said: dict[str, Any]) -> CatalogEntity:
    """The same thing with other facts in an aspect; what is nothing is taken out."""
    statements = carried_in(other.raw)
    body = {**folded_aspect(other, aspect), **said}
    body = {key: value for key, value in body.items() if value is not None}
    now = stated({aspect: body}, {aspect: statements.get(aspect, [])})
    carried = {**plain(statements), **plain({aspect: now})}
    return msgspec.structs.replace(other, raw={**other.raw, CATALOG: carried})


def text_in(body: dict[str, Any], key: str) -> str | None:
    value = body.get(key)
    return value if isinstance(value, str) and value else None


def _is_readable(other: CatalogEntity) -> bool:
    """Whether something is as DataHub says it; what only looks so is kept as it is."""
    try:
        carried_in(other.raw)
    except OddAspect:
        return False
    return True


def _place(other: CatalogEntity) -> _Place:
    type = type_of(other.urn)
    assert type is not None, f"{other.urn} has words"
    return _PLACES[type]
