"""What came from OpenMetadata, and has a place of its own in DataHub: tags and domains.

People see their titles and words there, and may change them. The exact form lies beside, and says
which entity was made to show it: one that was there before is people's, and is never touched.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub_model.annotations import DataHubWords, text_in
from lumos.catalogs.datahub_model.labels import LabelKind
from lumos.catalogs.datahub_model.lenses import State
from lumos.catalogs.datahub_model.names import entity_name, entity_urn
from lumos.catalogs.datahub_model.statements import Entity
from lumos.catalogs.openmetadata import texts as descriptions
from lumos.model.catalog import CatalogEntity

_THEIRS: Final = "openmetadata"
# Other names mean different things in quotes and without.
_PLAIN: Final = re.compile(rf'{_THEIRS}:(?P<type>tag|domain):(?P<name>[^"%]+)', re.DOTALL)
_ASPECTS: Final = {"tag": "tagProperties", "domain": "domainProperties"}


class Shown(NamedTuple):
    """A tag or a domain of OpenMetadata, and the entity that shows it."""

    urn: str
    entity: Entity
    kind: LabelKind
    name: str

    @property
    def aspect(self) -> str:
        """The aspect that shows it."""
        return _ASPECTS[self.entity.type]

    def words(self, other: CatalogEntity) -> DataHubWords | None:
        """What OpenMetadata says of it; nothing where that is not as OpenMetadata says it."""
        record = other.raw.get(_THEIRS)
        if not isinstance(record, dict) or record.get("deleted"):
            return None
        style = record.get("style")
        return DataHubWords(
            title=text_in(record, "displayName"),
            description=descriptions.decoded(text_in(record, "description") or "") or None,
            colour=text_in(style, "color") if isinstance(style, dict) else None,
        )

    def read(self, state: Mapping[str, Any]) -> DataHubWords:
        """What people read of it in DataHub."""
        body = state.get(self.aspect) or {}
        title = text_in(body, "name")
        return DataHubWords(
            title=None if title == self.name else title,
            description=text_in(body, "description"),
            colour=text_in(body, "colorHex"),
        )

    def written(self, state: State, words: DataHubWords) -> State:
        """The aspects that show these words; whatever else is said stays."""
        said: dict[str, Any] = {
            "name": words.title or self.name,
            "description": words.description,
        }
        if self.entity.type == "tag":
            said["colorHex"] = words.colour
        else:
            above = self.name.rpartition(".")[0]
            said["parentDomain"] = entity_urn("domain", above) if above else None
        body = {**(state.get(self.aspect) or {}), **said}
        kept = {key: value for key, value in body.items() if value is not None}
        return {**state, self.aspect: kept}

    def with_edits(self, other: CatalogEntity, now: DataHubWords) -> CatalogEntity:
        """What OpenMetadata would say with what people changed since it was shown."""
        then = self.read(self.written({}, self.words(other) or DataHubWords()))
        record = dict(other.raw[_THEIRS])
        if now.title != then.title:
            record["displayName"] = now.title
        if now.description != then.description:
            record["description"] = descriptions.encoded(now.description or "")
        if now.colour != then.colour:
            record["style"] = {**(record.get("style") or {}), "color": now.colour}
        if record == other.raw[_THEIRS]:
            return other
        if record.get("style") == {"color": None}:
            del record["style"]
        said = {key: value for key, value in record.items() if value not in (None, "")}
        return msgspec.structs.replace(other, raw={**other.raw, _THEIRS: said})


def shown_by(urn: str) -> Shown | None:
    """What shows something that OpenMetadata named, if anything does."""
    match = _PLAIN.fullmatch(urn)
    if match is None:
        return None
    kind: LabelKind = "tag" if match["type"] == "tag" else "domain"
    return Shown(urn, Entity(kind, entity_urn(kind, match["name"])), kind, match["name"])


def shown_in(entity: Entity) -> Shown | None:
    """What an entity may have been made to show."""
    name = entity_name(entity.type, entity.urn) if entity.type in _ASPECTS else None
    found = None if name is None else shown_by(f"{_THEIRS}:{entity.type}:{name}")
    return found if found is not None and found.entity == entity else None
