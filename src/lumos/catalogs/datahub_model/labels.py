"""Tags and domains by name, for modules that are about to use neutral URNs themselves."""

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.catalog import CatalogEntity, entity_id, entity_urn, kind_in_urn

LabelKind: TypeAlias = Literal["tag", "domain"]
_KINDS: Final[tuple[LabelKind, ...]] = ("tag", "domain")


class LabelName(NamedTuple):
    """A tag or a domain by its name in Lumos."""

    kind: LabelKind
    name: str

    @property
    def urn(self) -> str:
        return entity_urn(self.kind, self.name)


def label_of(urn: str) -> LabelName | None:
    """The tag or domain with a neutral URN, or None."""
    parts = entity_id(urn)
    kind = next((each for each in _KINDS if each == kind_in_urn(urn)), None)
    return None if parts is None or kind is None else LabelName(kind, "/".join(parts))


def renamed(other: CatalogEntity, names: dict[LabelName, LabelName]) -> CatalogEntity:
    """A tag or a domain under another name, and below what its parent is called now."""
    label, parent = label_of(other.urn), label_of(other.parent or "")
    if label is None:
        return other
    if parent in names:
        other = msgspec.structs.replace(other, parent=names[parent].urn)
    return msgspec.structs.replace(other, urn=names.get(label, label).urn)
