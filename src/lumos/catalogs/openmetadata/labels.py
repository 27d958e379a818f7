"""What entities refer to and what must be there before they do: tags, terms, owners and domains.

Tags and terms of Lumos are in a classification and a glossary of its own, both named `Lumos`. One
that reads like a tag or a term which the catalog has, such as `PII.Sensitive`, is that one. However
one is written, it is read by the same name.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from threading import RLock
from typing import Any, Final

from lumos.catalogs.openmetadata.names import joined, meant, shortened, spelled, split
from lumos.catalogs.openmetadata.server import Server
from lumos.errors import CatalogError
from lumos.model.dataset import Owner

OWN: Final = "Lumos"
MADE: Final = "Created by Lumos, because something refers to it or is in it."
"""The description of what is there for others alone."""
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
# Terms of one glossary may not differ by case alone: the second has a hash of its name at the end.
_APART: Final = re.compile(r"(?P<name>.*)~(?P<digest>[0-9a-f]{8})\Z", re.DOTALL)
_PLAIN_MAILBOX: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_LONGEST_MAILBOX: Final = 64
_NO_MAIL: Final = "@lumos.invalid"
_REFUSED: Final = 400
_TAKEN: Final = 409


def tag_of(label: Mapping[str, Any]) -> str | None:
    """The tag that a label is, or nothing where it is a term."""
    return _read(label["tagFQN"]) if label["source"] == _TAGS else None


def term_of(label: Mapping[str, Any]) -> str | None:
    """The term that a label is, or nothing where it is a tag."""
    return term_named(label["tagFQN"]) if label["source"] == _TERMS else None


def term_named(fqn: str) -> str:
    """The name in Lumos of a term with a qualified name."""
    parts = split(fqn)
    if parts[0] != OWN or len(parts) == 1:
        return fqn
    match = _APART.match(parts[-1])
    if match and _digest(meant(match["name"])) == match["digest"]:
        return meant(match["name"])
    return _read(fqn)


def owner_of(reference: Mapping[str, Any]) -> Owner:
    """The owner that is referred to."""
    kind: Any = "group" if reference["type"] == "team" else "user"
    return Owner(name=meant(reference["name"]), kind=kind)


def domain_of(reference: Mapping[str, Any]) -> str:
    """The domain that is referred to."""
    fqn: str = reference["fullyQualifiedName"]
    parts = split(fqn)
    return meant(parts[0]) if len(parts) == 1 else fqn


def tag_fqn(name: str) -> str:
    """The qualified name of a tag: one that reads so already is people's, any other Lumos's."""
    return name if is_qualified(name) else own_fqn(name)


def term_fqn(name: str) -> str:
    """The qualified name of a term, as for tags."""
    return name if is_qualified(name) else joined(OWN, _plain_term(name))


def domain_fqn(name: str) -> str:
    """The qualified name of a domain."""
    return name if is_qualified(name) else joined(shortened(spelled(name)))


def user_name(name: str) -> str:
    """The name of a user in OpenMetadata, which knows only small letters there."""
    return shortened(spelled(name)).lower()


def team_name(name: str) -> str:
    return shortened(spelled(name))


def shown_owners(owners: Iterable[Owner], there: Collection[str] = ()) -> list[Owner]:
    """Several users or one group, which is all that OpenMetadata allows.

    A group whose name is `there` already stays: people have put it in the place of users.
    """
    users = [owner for owner in owners if owner.kind == "user"]
    groups = sorted((each for each in owners if each.kind == "group"), key=lambda each: each.name)
    kept = [owner for owner in groups if team_name(owner.name) in there]
    return kept or users or groups[:1]


def stand_in(name: str) -> str:
    """An address that no mail ever reaches, for a user of whom none is known."""
    plain = user_name(name)
    is_plain = _PLAIN_MAILBOX.fullmatch(plain) and len(plain) <= _LONGEST_MAILBOX
    return f"{plain if is_plain else _digest(plain, 16)}{_NO_MAIL}"


def is_stand_in(email: str | None) -> bool:
    return bool(email) and str(email).endswith(_NO_MAIL)


class OpenMetadataLabels:
    """The labels of one server; each is looked for once and made where it is missing."""

    def __init__(self, server: Any) -> None:
        self._server: Server = server
        self._tags: dict[str, str] = {}
        self._terms: dict[str, str] = {}
        self._exclusive: dict[str, str] = {}
        self._owners: dict[tuple[str, str], str] = {}
        self._domains: dict[str, tuple[str, str]] = {}
        self._products: dict[str, dict[str, Any]] = {}
        self._homes: set[str] = set()
        self._lock = RLock()

    def ensure(
        self,
        *,
        tags: Iterable[str] = (),
        terms: Iterable[str] = (),
        owners: Iterable[Owner] = (),
        domains: Iterable[str] = (),
    ) -> None:
        """Makes sure that these can be referred to."""
        with self._lock:
            for name in tags:
                self._once(self._tags, name, self._found_tag)
            for name in terms:
                self._once(self._terms, name, self._found_term)
            for owner in owners:
                key = _owner_key(owner)
                if key not in self._owners:
                    self._owners[key] = self._found_owner(owner)
            for name in domains:
                self._once(self._domains, name, self._found_domain)

    def tag(self, name: str) -> dict[str, Any]:
        return _label(_TAGS, self._tags.get(name) or own_fqn(name))

    def tags(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """The labels of an entity; of a classification that allows one tag only the first one."""
        found, taken = [], set()
        for name in dict.fromkeys(names):
            label = self.tag(name)
            classification = self._exclusive.get(label["tagFQN"])
            if classification in taken:
                with self._lock:
                    label = _label(_TAGS, self._own_tag(name))
            elif classification is not None:
                taken.add(classification)
            found.append(label)
        return found

    def compatible(self, labels: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Labels without a second tag of a classification that allows only one."""
        found: dict[str, dict[str, Any]] = {}
        for label in labels:
            found.setdefault(self._exclusive.get(label["tagFQN"]) or label["tagFQN"], label)
        return list(found.values())

    def term(self, name: str) -> dict[str, Any]:
        return _label(_TERMS, self._terms.get(name) or own_fqn(name))

    def owner(self, owner: Owner) -> dict[str, Any]:
        key = _owner_key(owner)
        reference = {"type": key[0], "name": key[1]}
        return {"id": self._owners[key], **reference} if key in self._owners else reference

    def domain(self, name: str) -> dict[str, Any]:
        if name in self._domains:
            id, fqn = self._domains[name]
            return {"id": id, "type": "domain", "fullyQualifiedName": fqn}
        return {"type": "domain", "fullyQualifiedName": joined(shortened(spelled(name)))}

    def find(self, source: str, fqn: str) -> str | None:
        """The qualified name here of a tag or term that has this one elsewhere.

        One with a plain name is created; one of people's own may be there later.
        """
        label = {"tagFQN": fqn, "source": source}
        is_tag = source == _TAGS
        name = (tag_of if is_tag else term_of)(label) or fqn
        known = self._tags if is_tag else self._terms
        with self._lock:
            if name not in known and is_qualified(name):
                route = "tags" if is_tag else "glossaryTerms"
                if not any(self._server.named(route, each) for each in (name, own_fqn(name))):
                    return None
            self.ensure(tags=[name] if is_tag else (), terms=() if is_tag else [name])
            return known[name]

    def product(self, fqn: str) -> dict[str, Any] | None:
        """The data product of a qualified name, if the catalog has it; none is ever made."""
        with self._lock:
            if fqn not in self._products:
                found = self._server.named("dataProducts", fqn)
                if found is None:
                    return None
                reference = {"id": found["id"], "type": "dataProduct", "fullyQualifiedName": fqn}
                self._products[fqn] = reference
            return self._products[fqn]

    def forget(self) -> None:
        """Looks for everything again when it is needed next."""
        with self._lock:
            for known in (self._tags, self._terms, self._exclusive, self._owners, self._domains):
                known.clear()
            self._products.clear()
            self._homes.clear()

    @staticmethod
    def _once(known: dict[str, Any], name: str, find: Callable[[str], Any]) -> None:
        if name not in known:
            known[name] = find(name)

    def _found_tag(self, name: str) -> str:
        there = self._there("tags", name)
        if there is None:
            return self._own_tag(name)
        classification = there["classification"]["fullyQualifiedName"]
        about = self._server.named("classifications", classification) or {}
        if about.get("mutuallyExclusive"):
            self._exclusive[there["fullyQualifiedName"]] = classification
        return str(there["fullyQualifiedName"])

    def _own_tag(self, name: str) -> str:
        self._home("classifications")
        # One that was deleted is restored by being made again.
        if self._server.named("tags", own_fqn(name)) is None:
            body = {"classification": OWN, "name": shortened(spelled(name)), "description": MADE}
            self._server.put("tags", body)
        return own_fqn(name)

    def _found_term(self, name: str) -> str:
        there = self.known_term(name)
        if there is not None and not there.get("deleted"):
            return str(there["fullyQualifiedName"])
        return str(self.make_term(name)["fullyQualifiedName"])

    def known_term(self, name: str, **query: Any) -> Any:
        """The term of that name as the catalog has it, or nothing."""
        asked = {"include": "all", **query}
        if (there := self._there("glossaryTerms", name, **asked)) is not None:
            return there
        for fqn in (own_fqn(name), joined(OWN, _apart(name))):
            there = self._server.named("glossaryTerms", fqn, **asked)
            if there is not None and term_named(there["fullyQualifiedName"]) == name:
                return there
            if there is not None and shortened(spelled(name)) != spelled(name):
                return there
        return None

    def make_term(self, name: str, *, known_as: str | None = None, **said: Any) -> Any:
        """Makes a term, under another name where one differs from it by case alone."""
        self._home("glossaries")
        plain = known_as or _plain_term(name)
        body = {"glossary": OWN, "name": plain, "description": MADE, **said}
        try:
            return self._server.put("glossaryTerms", body)
        except CatalogError as problem:
            if problem.status != _REFUSED or "already exists" not in str(problem):
                raise
            return self._server.put("glossaryTerms", {**body, "name": _apart(name)})

    def _found_owner(self, owner: Owner) -> str:
        if owner.kind == "group":
            name = team_name(owner.name)
            there = self._server.named("teams", joined(name), include="all")
            if there is None or there.get("deleted"):
                body = {"name": name, "teamType": "Group", "description": MADE}
                there = self._server.put("teams", body)
            return str(there["id"])
        there = self.known_user(owner.name)
        if there is None or there.get("deleted"):
            there = self.make_user(owner.name, description=MADE)
        return str(there["id"])

    def known_user(self, name: str, **query: Any) -> Any:
        return self._server.named("users", joined(user_name(name)), include="all", **query)

    def make_user(self, name: str, email: str | None = None, **said: Any) -> Any:
        """Makes a user; an address that somebody else has is not given again."""
        body = {"name": user_name(name), "email": email or stand_in(name), **said}
        try:
            return self._server.put("users", body)
        except CatalogError as problem:
            if email is None or problem.status not in (_REFUSED, _TAKEN):
                raise
            return self._server.put("users", {**body, "email": stand_in(name)})

    def _found_domain(self, name: str) -> tuple[str, str]:
        there = self._there("domains", name)
        if there is None:
            plain = shortened(spelled(name))
            there = self._server.named("domains", joined(plain)) or self._server.put(
                "domains", {"name": plain, "domainType": "Aggregate", "description": MADE}
            )
        return str(there["id"]), str(there["fullyQualifiedName"])

    def _there(self, route: str, name: str, **query: Any) -> Any:
        """What the catalog has under just this qualified name, outside of what is Lumos's own."""
        return self._server.named(route, name, **query) if is_qualified(name) else None

    def _home(self, route: str) -> None:
        """Makes sure of the classification or glossary that everything of Lumos is in."""
        if route not in self._homes:
            if self._server.named(route, OWN) is None:
                self._server.put(route, {"name": OWN, "description": MADE})
            self._homes.add(route)


def is_qualified(name: str) -> bool:
    """Whether a name is just a qualified one of something that is not Lumos's own."""
    parts = split(name)
    if len(parts) == 1 or parts[0] == OWN or not all(parts) or joined(*parts) != name:
        return False
    return all(spelled(part) == part for part in parts)


def _label(source: str, fqn: str) -> dict[str, Any]:
    return {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}


def own_fqn(name: str) -> str:
    """The qualified name of a tag or term of Lumos."""
    return joined(OWN, shortened(spelled(name)))


def _plain_term(name: str) -> str:
    """The name of a term; one that reads like another with its hash always has one, too."""
    match = _APART.match(spelled(name))
    is_misread = match is not None and _digest(meant(match["name"])) == match["digest"]
    return _apart(name) if is_misread else shortened(spelled(name))


def _apart(name: str) -> str:
    return shortened(f"{spelled(name)}~{_digest(name)}")


def _read(fqn: str) -> str:
    parts = split(fqn)
    return meant(parts[1]) if len(parts) == 2 and parts[0] == OWN else fqn


def _owner_key(owner: Owner) -> tuple[str, str]:
    is_team = owner.kind == "group"
    return ("team", team_name(owner.name)) if is_team else ("user", user_name(owner.name))


def _digest(text: str, length: int = 8) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
