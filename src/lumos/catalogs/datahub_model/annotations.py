"""Display names and descriptions of entities, for modules that are about to read these fields."""

import msgspec

from lumos.model.catalog import CatalogEntity


class DataHubWords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people read of an entity."""

    title: str | None = None
    description: str | None = None
    colour: str | None = None
    url: str | None = None


def words_of(other: CatalogEntity) -> DataHubWords:
    """The display name and description of an entity."""
    return DataHubWords(title=other.display_name, description=other.description)


def with_words(other: CatalogEntity, words: DataHubWords) -> CatalogEntity:
    """The entity with another display name and description."""
    return msgspec.structs.replace(other, display_name=words.title, description=words.description)
