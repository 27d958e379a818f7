"""Tags and domains as DataHub has them: entities with a title and words, often named by an id."""

from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.catalog import Other
from lumos.platforms.datahub_model.carrying import CATALOG, carried_in, folded, plain, stated
from lumos.platforms.datahub_model.names import entity_name, entity_urn
from lumos.platforms.datahub_model.shapes import OddAspect

LabelKind: TypeAlias = Literal["tag", "domain"]
_PROPERTIES: Final[dict[LabelKind, str]] = {"tag": "tagProperties", "domain": "domainProperties"}
_PARENT: Final = "parentDomain"


class LabelName(NamedTuple):
    """A tag or a domain by its name in Lumos."""

    kind: LabelKind
    name: str

    @property
    def urn(self) -> str:
        return entity_urn(self.kind, self.name)


class Words(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people read of something: its title, what it is, and the colour that it has."""

    title: str | None = None
    description: str | None = None
    colour: str | None = None


def label_of(urn: str) -> LabelName | None:
    """The tag or domain that has a URN of DataHub, or nothing."""
    for kind in _PROPERTIES:
        name = entity_name(kind, urn)
        # A name that Lumos would spell in another way is not that of a label in Lumos.
        if name is not None and entity_urn(kind, name) == urn:
            return LabelName(kind, name)
    return None


def words_of(label: LabelName, other: Other) -> Words:
    """What DataHub says of a tag or a domain."""
    body = folded_aspect(other, _PROPERTIES[label.kind])
    return Words(
        title=text_in(body, "name"),
        description=text_in(body, "description"),
        colour=text_in(body, "colorHex"),
    )


def with_words(label: LabelName, other: Other, words: Words) -> Other:
    """A tag or a domain of which DataHub says these words."""
    said = {"name": words.title, "description": words.description}
    if label.kind == "tag":
        said["colorHex"] = words.colour
    # Both kinds must have a name.
    said["name"] = words.title or label.name
    return with_aspect(other, _PROPERTIES[label.kind], said)


def renamed(other: Other, names: dict[LabelName, LabelName]) -> Other:
    """A tag or a domain under another name, and below what its parent is called now."""
    label = label_of(other.urn)
    if label is None:
        return other
    body = folded_aspect(other, _PROPERTIES[label.kind])
    above = label_of(body.get(_PARENT) or "")
    if above in names:
        parent = {_PARENT: names[above].urn}
        other = with_aspect(other, _PROPERTIES[label.kind], parent)
    return msgspec.structs.replace(other, urn=names.get(label, label).urn)


def folded_aspect(other: Other, aspect: str) -> dict[str, Any]:
    """An aspect of something that was brought from DataHub; empty where it has none."""
    try:
        body = folded(carried_in(other.carried).get(aspect, [])).get(aspect)
    except OddAspect:
        # Something that only looks as if it was DataHub's; it is kept as it is.
        return {}
    return body if isinstance(body, dict) else {}


def with_aspect(other: Other, aspect: str, said: dict[str, Any]) -> Other:
    """The same thing with other facts in an aspect; what is nothing is taken out."""
    statements = carried_in(other.carried)
    body = {**folded_aspect(other, aspect), **said}
    body = {key: value for key, value in body.items() if value is not None}
    now = stated({aspect: body}, {aspect: statements.get(aspect, [])})
    carried = {**plain(statements), **plain({aspect: now})}
    return msgspec.structs.replace(other, carried={**other.carried, CATALOG: carried})


def text_in(body: dict[str, Any], key: str) -> str | None:
    value = body.get(key)
    return value if isinstance(value, str) and value else None
