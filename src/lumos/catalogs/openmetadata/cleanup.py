"""What Lumos made only so that datasets and items can refer to it or lie in it, once it is unused.

Whatever people changed, use or put something into stays.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lumos.catalogs.openmetadata import users as people
from lumos.catalogs.openmetadata.extras import ABOUT as ABOUT_ITEMS
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.items import OWN_HOLDERS, OpenMetadataItems
from lumos.catalogs.openmetadata.labels import ABOUT as ABOUT_LABELS
from lumos.catalogs.openmetadata.labels import OWN, OpenMetadataLabels, is_stand_in
from lumos.catalogs.openmetadata.server import Server
from lumos.errors import CatalogError
from lumos.model.catalog import GlossaryTerm, Group, User

# An entity that was never changed since it was made.
_FIRST_VERSION: Final = 0.1
_ORCHESTRATORS: Final = "services/pipelineServices"
# Something is in it, or it is not for us to remove.
_STAYS: Final = (400, 403)


class Tidier:
    """Takes out what is left over on one server."""

    def __init__(
        self, server: Server, index: Index, labels: OpenMetadataLabels, items: OpenMetadataItems
    ) -> None:
        self._server = server
        self._index = index
        self._labels = labels
        self._items = items

    def tidy(self) -> None:
        self._items.erase_the_rest()
        # Teams before those who are in them, and all of them before what holds them.
        self._drop("glossaryTerms", self._unused_terms())
        self._drop("tags", self._unused_tags())
        self._drop("teams", self._unused_teams())
        self._drop("users", self._unused_users())
        self._index.tidy_all()
        for route, fqn in OWN_HOLDERS:
            self._drop_holder(route, fqn, ABOUT_ITEMS)
        for service in list(self._server.pages(_ORCHESTRATORS, include="non-deleted")):
            if service.get("description") == ABOUT_ITEMS:
                self._delete(_ORCHESTRATORS, service)
        for route in ("glossaries", "classifications"):
            self._drop_holder(route, OWN, ABOUT_LABELS)
        self._labels.forget_all()
        self._items.forget_holders()

    def _drop(self, route: str, unused: Iterator[Mapping[str, Any]]) -> None:
        for entity in list(unused):
            self._delete(route, entity)

    def _drop_holder(self, route: str, fqn: str, about: str) -> None:
        there = self._server.named(route, fqn)
        if there is not None and there.get("description") == about:
            self._delete(route, there)

    def _delete(self, route: str, entity: Mapping[str, Any]) -> None:
        try:
            self._server.delete(f"{route}/{entity['id']}", hardDelete=True)
        except CatalogError as problem:
            if problem.status not in _STAYS:
                raise

    def _unused_terms(self) -> Iterator[Mapping[str, Any]]:
        if self._server.named("glossaries", OWN) is None:
            return
        fields = "relatedTerms,owners,domains,extension"
        for term in self._untouched("glossaryTerms", people.is_bare_term, fields=fields):
            is_item = self._items.get(GlossaryTerm, people.read_term(term).name) is not None
            if (
                not is_item
                and self._asked("glossaryTerms", term, "usageCount").get("usageCount") == 0
            ):
                yield term

    def _unused_tags(self) -> Iterator[Mapping[str, Any]]:
        if self._server.named("classifications", OWN) is None:
            return
        for tag in self._untouched("tags", _says_nothing, fields="usageCount", parent=OWN):
            if tag["classification"]["name"] == OWN and tag.get("usageCount") == 0:
                yield tag

    def _unused_teams(self) -> Iterator[Mapping[str, Any]]:
        for team in self._untouched("teams", people.is_bare_group, fields="users"):
            is_item = self._items.get(Group, people.read_group(team).name) is not None
            if not is_item and not self._asked("teams", team, "owns").get("owns"):
                yield team

    def _unused_users(self) -> Iterator[Mapping[str, Any]]:
        for user in self._untouched("users", people.is_bare_user):
            name = people.read_user(user).name
            if not is_stand_in(user.get("email")) or self._items.get(User, name) is not None:
                continue
            told = self._asked("users", user, "owns,teams")
            teams = {each["name"] for each in told.get("teams") or ()} - {people.ROOT_TEAM}
            if not told.get("owns") and not teams:
                yield user

    def _untouched(
        self, route: str, is_bare: Callable[[Mapping[str, Any]], bool], **asked: Any
    ) -> Iterator[Mapping[str, Any]]:
        for entity in self._server.pages(route, include="non-deleted", **asked):
            if entity.get("version") == _FIRST_VERSION and is_bare(entity):
                yield entity

    def _asked(self, route: str, entity: Mapping[str, Any], fields: str) -> Mapping[str, Any]:
        return self._server.get(f"{route}/{entity['id']}", fields=fields) or {}


def _says_nothing(tag: Mapping[str, Any]) -> bool:
    return not tag.get("description") and not tag.get("displayName")
