"""Tags and domains as DataHub has them: entities with a title and words, often named by an id."""

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.datahub_model.annotations import folded_aspect, text_in, with_aspect
from lumos.catalogs.datahub_model.names import entity_name, entity_urn
from lumos.model.catalog import CatalogEntity

LabelKind: TypeAlias = Literal["tag", "domain"]
_KINDS: Final[tuple[LabelKind, ...]] = ("tag", "domain")
_DOMAIN: Final = "domainProperties"
_PARENT: Final = "parentDomain"


class LabelName(NamedTuple):
    """A tag or a domain by its name in Lumos."""

    kind: LabelKind
    name: str

    @property
    def urn(self) -> str:
        return entity_urn(self.kind, self.name)


def label_of(urn: str) -> LabelName | None:
    """The tag or domain that has a URN of DataHub, or nothing."""
    for kind in _KINDS:
        name = entity_name(kind, urn)
        # A name that Lumos would spell in another way is not that of a label in Lumos.
        if name is not None and entity_urn(kind, name) == urn:
            return LabelName(kind, name)
    return None


def renamed(other: CatalogEntity, names: dict[LabelName, LabelName]) -> CatalogEntity:
    """A tag or a domain under another name, and below what its parent is called now."""
    label = label_of(other.urn)
    if label is None:
        return other
    above = label_of(text_in(folded_aspect(other, _DOMAIN), _PARENT) or "")
    if above in names:
        other = with_aspect(other, _DOMAIN, {_PARENT: names[above].urn})
    return msgspec.structs.replace(other, urn=names.get(label, label).urn)
