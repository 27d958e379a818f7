"""What is said of entities of DataHub, and what a place must be able to do that holds it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from lumos.errors import LumosError

# Whoever deletes this aspect, or none, deletes the dataset.
_KEY: Final = "datasetKey"


class AspectStatement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one change says of one aspect of an entity.

    `body` is the aspect as JSON; `beside` holds the other keys of the change, such as when and by
    whom it was made, and a kind of change that is no UPSERT.
    """

    aspect: str
    body: Any = None
    beside: dict[str, Any] = {}

    @property
    def removes(self) -> bool:
        """Whether the aspect is gone from here on."""
        return bool(self.beside.get("changeType") == "DELETE")

    @property
    def removes_all(self) -> bool:
        """Whether the entity itself is gone from here on."""
        return self.removes and self.aspect in ("", _KEY)

    @property
    def patches(self) -> bool:
        """Whether the body is a patch of what the aspect was before."""
        return self.body is not None and self.beside.get("changeType") == "PATCH"

    @property
    def replaces(self) -> bool:
        """Whether the aspect is the body from here on."""
        return self.body is not None and self.beside.get("changeType") not in ("DELETE", "PATCH")


class Entity(NamedTuple):
    """An entity's type and URN."""

    type: str
    urn: str


class DataHubExtras(Protocol):
    """A place that keeps what aspects are in the end, and not each statement about them.

    It may fill in what was left out, and make aspects by itself.
    """

    def holds(self, entity: Entity) -> bool:
        """Whether an entity has its place there, and is not the place's own business."""

    def sent(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """As much of some aspects as is understood there."""

    def kept(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """Aspects in their normal form: without what goes without saying there."""

    def without_empty(self, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """Aspects without those that say nothing, which are not there any more when read."""


class Holder(Protocol):
    """A place where statements about entities are kept: a file, or a server."""

    keeps_loose: bool
    """Whether changes have a place there that are about no entity."""

    def entities(self) -> Iterator[Entity]:
        """All entities of which anything is said."""

    def statements(self, urn: str, aspect: str | None = None) -> list[AspectStatement]:
        """What is said of an entity, or of one of its aspects, the last word last."""

    def replace(self, entity: Entity, statements: Sequence[AspectStatement]) -> bool:
        """Makes this all that is said of an entity; gives whether anything had to change."""

    def loose(self) -> Mapping[str, Any]:
        """Changes that are about no entity, by name."""

    def add_loose(self, name: str, change: Any) -> bool:
        """Adds such a change, once; gives whether it was new."""

    def remove_loose(self, name: str) -> None:
        """Takes such a change out."""

    def complaint(self, place: str, problem: str) -> LumosError:
        """What to say of something that is not as DataHub writes it."""


def entity_of(urn: str) -> Entity:
    """The entity of a URN, which names its type."""
    return Entity(urn.split(":", 3)[2] if urn.count(":") > 2 else "", urn)
