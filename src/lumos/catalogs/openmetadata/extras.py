"""What Lumos keeps beside entities: items whole, together with what was shown when they were put.

Terms and pipelines have a custom property for that; everything else has a container in the storage
service `lumos`, in a folder for its kind.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.openmetadata.names import OWN_SERVICE, joined, shortened, spelled
from lumos.catalogs.openmetadata.patches import guard
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.server import Server
from lumos.model.json_codec import from_plain, to_json, to_plain

KEPT: Final = "lumosItem"
ABOUT: Final = "Kept by Lumos: what OpenMetadata has no place of its own for."
Kinds: TypeAlias = Mapping[str, tuple[type[Any], type[Any]]]
"""By the word of a folder: the types of what is kept in it, and of what the catalog shows of it."""


class Kept(NamedTuple):
    """An item as it was put, and as the catalog showed it then.

    `made` says whether the entity was made for it, and may go with it. One that is `begun` is laid
    before anything is shown: a process that is killed in between leaves nothing that looks like
    people's own, nor like something finished. `entity` is the id of what shows something of another
    catalog: whatever else has that name is people's.
    """

    item: Any
    shown: Any
    made: bool
    begun: bool = False
    entity: str | None = None


class OpenMetadataExtras:
    """What is kept on one server."""

    def __init__(self, server: Server, properties: CustomProperties) -> None:
        self._server = server
        self._properties = properties
        self._folders: dict[str, str] = {}

    def forget(self) -> None:
        """Looks again for what things are kept in when it is needed next."""
        self._folders.clear()

    def kept(
        self, word: str, key: str, type: type[Any], shown: type[Any] | None = None
    ) -> Kept | None:
        """What is kept under a key in the folder of a kind."""
        return inside(type, shown or type, self._container(word, key))

    def all(self, kinds: Kinds) -> Iterator[tuple[str, Kept]]:
        """All that is kept in some folders, with the folder's word."""
        if self._server.named("services/storageServices", OWN_SERVICE) is None:
            return
        folders = {joined(OWN_SERVICE, word): word for word in kinds}
        for container in self._server.pages(
            "containers", fields="extension,parent", service=OWN_SERVICE
        ):
            word = folders.get((container.get("parent") or {}).get("fullyQualifiedName", ""))
            if word is not None and (found := inside(*kinds[word], container)) is not None:
                yield word, found

    def holds_any(self, word: str) -> bool:
        """Whether anything may be kept in a folder."""
        return self._server.named("containers", joined(OWN_SERVICE, word)) is not None

    def keep(self, word: str, key: str, kept: Kept | None) -> None:
        """Keeps something in a folder, or takes it away."""
        container = self._container(word, key)
        if kept is None:
            if container is not None:
                self._server.delete(f"containers/{container['id']}", hardDelete=True)
        elif container is None:
            self._properties.declare("container", [KEPT])
            body = {
                "name": shortened(spelled(key)),
                "service": OWN_SERVICE,
                "parent": {"id": self._folder(word), "type": "container"},
                "extension": {KEPT: text_of(kept)},
            }
            self._server.put("containers", body)
        else:
            self.lay("containers", container, "container", kept)

    def lay(self, route: str, entity: Any, type: str, kept: Kept | None) -> None:
        """Lays something into an entity itself, or takes it out."""
        extension = entity.get("extension") or {}
        if kept is None:
            operations = [{"op": "remove", "path": f"/extension/{KEPT}"}]
        else:
            self._properties.declare(type, [KEPT])
            path = f"/extension/{KEPT}" if extension else "/extension"
            value: Any = text_of(kept) if extension else {KEPT: text_of(kept)}
            operations = [{"op": "add", "path": path, "value": value}]
        self._server.patch(f"{route}/{entity['id']}", [*guard(entity), *operations])

    def service(self, kind: str, type: str) -> None:
        """Makes sure of a service of Lumos's own."""
        route = f"services/{kind}Services"
        if self._server.named(route, OWN_SERVICE) is None:
            body = {"name": OWN_SERVICE, "serviceType": type, "description": ABOUT}
            self._server.put(route, body)

    def _container(self, word: str, key: str) -> Any:
        fqn = joined(OWN_SERVICE, word, shortened(spelled(key)))
        return self._server.named("containers", fqn, fields="extension")

    def _folder(self, word: str) -> str:
        """The container that all items of a kind are in."""
        if word not in self._folders:
            self.service("storage", "CustomStorage")
            there = self._server.named("containers", joined(OWN_SERVICE, word))
            if there is None:
                body = {"name": word, "service": OWN_SERVICE, "description": ABOUT}
                there = self._server.put("containers", body)
            self._folders[word] = there["id"]
        return self._folders[word]


def holders(words: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """What Lumos made to keep things in, by routes and qualified names."""
    return (
        *(("containers", joined(OWN_SERVICE, word)) for word in words),
        ("services/storageServices", OWN_SERVICE),
        ("services/pipelineServices", OWN_SERVICE),
    )


def text_of(kept: Kept) -> str:
    shown = None if kept.shown is None else to_plain(kept.shown)
    said = {"item": to_plain(kept.item), "shown": shown, "made": kept.made}
    if kept.begun:
        said["begun"] = True
    if kept.entity is not None:
        said["entity"] = kept.entity
    return to_json(said).decode()


def inside(type: type[Any], shown_type: type[Any], entity: Any) -> Kept | None:
    """What Lumos laid into an entity; what is not as it wrote it is nothing."""
    text = ((entity or {}).get("extension") or {}).get(KEPT)
    if text is None:
        return None
    try:
        said = msgspec.json.decode(text)
        shown = None if said["shown"] is None else from_plain(said["shown"], shown_type)
        item, made = from_plain(said["item"], type), bool(said["made"])
        return Kept(item, shown, made, bool(said.get("begun")), said.get("entity"))
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None
