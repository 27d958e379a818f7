"""Finds or creates tags, terms, owners and domains that entities refer to.

Lumos creates tags and terms in a classification and a glossary named `Lumos`. A qualified name such
as `PII.Sensitive` refers to a tag or term of the catalog, if it exists. In both cases, the label
has the same name when it is read again.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from threading import RLock
from typing import Any, Final, NamedTuple

from lumos.catalogs.openmetadata.names import (
    decode_name,
    encode_name,
    join_fqn,
    shorten_name,
    split_fqn,
)
from lumos.catalogs.openmetadata.server import Server
from lumos.errors import CatalogError
from lumos.model.dataset import Owner

LUMOS: Final = "Lumos"
PLACEHOLDER_TEXT: Final = "Created by Lumos, because something refers to it or is in it."
"""The description of an entity that only exists because others refer to it or are in it."""
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
# Terms of a glossary must differ by more than case, so the second one ends with a hash.
_NAME_WITH_DIGEST: Final = re.compile(r"(?P<name>.*)~(?P<digest>[0-9a-f]{8})\Z", re.DOTALL)
_PLAIN_MAILBOX: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_MAX_MAILBOX_LENGTH: Final = 64
_PLACEHOLDER_DOMAIN: Final = "@lumos.invalid"
_BAD_REQUEST: Final = 400
_CONFLICT: Final = 409


class LabelNames(NamedTuple):
    tags: tuple[str, ...]
    terms: tuple[str, ...]


def read_labels(labels: Iterable[Mapping[str, Any]]) -> LabelNames:
    """The sorted names of the tags and terms of an entity or column."""
    tags, terms = set(), set()
    for label in labels:
        if (tag := tag_of(label)) is not None:
            tags.add(tag)
        elif (term := term_of(label)) is not None:
            terms.add(term)
    return LabelNames(tuple(sorted(tags)), tuple(sorted(terms)))


def tag_of(label: Mapping[str, Any]) -> str | None:
    """The tag of a label, or None if it is a term."""
    return _unqualified_name(label["tagFQN"]) if label["source"] == _TAGS else None


def term_of(label: Mapping[str, Any]) -> str | None:
    """The term of a label, or None if it is a tag."""
    return term_named(label["tagFQN"]) if label["source"] == _TERMS else None


def term_named(fqn: str) -> str:
    """The name of a term in Lumos, given its qualified name."""
    parts = split_fqn(fqn)
    if parts[0] != LUMOS or len(parts) == 1:
        return fqn
    match = _NAME_WITH_DIGEST.match(parts[-1])
    if match and _digest(decode_name(match["name"])) == match["digest"]:
        return decode_name(match["name"])
    return _unqualified_name(fqn)


def owner_of(reference: Mapping[str, Any]) -> Owner:
    kind: Any = "group" if reference["type"] == "team" else "user"
    return Owner(name=decode_name(reference["name"]), kind=kind)


def domain_of(reference: Mapping[str, Any]) -> str:
    fqn: str = reference["fullyQualifiedName"]
    parts = split_fqn(fqn)
    return decode_name(parts[0]) if len(parts) == 1 else fqn


def tag_fqn(name: str) -> str:
    """The qualified name of a tag; a name that is not qualified is a tag of Lumos."""
    return name if is_qualified(name) else lumos_fqn(name)


def term_fqn(name: str) -> str:
    """The qualified name of a term; a name that is not qualified is a term of Lumos."""
    return name if is_qualified(name) else join_fqn(LUMOS, _term_name(name))


def domain_fqn(name: str) -> str:
    return name if is_qualified(name) else join_fqn(shorten_name(encode_name(name)))


def user_name(name: str) -> str:
    """The name of a user in OpenMetadata, which is in lower case."""
    return shorten_name(encode_name(name)).lower()


def team_name(name: str) -> str:
    return shorten_name(encode_name(name))


def storable_owners(owners: Iterable[Owner], existing: Collection[str] = ()) -> list[Owner]:
    """Several users or one group, since OpenMetadata allows no other combination.

    Groups in `existing` take precedence, because someone assigned them in OpenMetadata.
    """
    users = [owner for owner in owners if owner.kind == "user"]
    groups = sorted((each for each in owners if each.kind == "group"), key=lambda each: each.name)
    existing_groups = [owner for owner in groups if team_name(owner.name) in existing]
    return existing_groups or users or groups[:1]


def placeholder_email(name: str) -> str:
    """An invalid mail address for a user without a known one."""
    plain = user_name(name)
    is_plain = _PLAIN_MAILBOX.fullmatch(plain) and len(plain) <= _MAX_MAILBOX_LENGTH
    return f"{plain if is_plain else _digest(plain, 16)}{_PLACEHOLDER_DOMAIN}"


def is_placeholder_email(email: str | None) -> bool:
    return bool(email) and str(email).endswith(_PLACEHOLDER_DOMAIN)


class OpenMetadataLabels:
    """Finds or creates the labels of one server, each once."""

    def __init__(self, server: Any) -> None:
        self._server: Server = server
        self._tags: dict[str, str] = {}
        self._terms: dict[str, str] = {}
        self._exclusive: dict[str, str] = {}
        self._owners: dict[tuple[str, str], str] = {}
        self._domains: dict[str, tuple[str, str]] = {}
        self._products: dict[str, dict[str, Any]] = {}
        self._parents: set[str] = set()
        self._lock = RLock()

    def ensure(
        self,
        *,
        tags: Iterable[str] = (),
        terms: Iterable[str] = (),
        owners: Iterable[Owner] = (),
        domains: Iterable[str] = (),
    ) -> None:
        """Create missing labels, so that entities can refer to them."""
        with self._lock:
            for name in tags:
                if name not in self._tags:
                    self._tags[name] = self._ensure_tag(name)
            for name in terms:
                if name not in self._terms:
                    term = self.known_term(name)
                    if term is None or term.get("deleted"):
                        term = self.make_term(name)
                    self._terms[name] = str(term["fullyQualifiedName"])
            for owner in owners:
                key = _owner_key(owner)
                if key not in self._owners:
                    self._owners[key] = self._ensure_owner(owner)
            for name in domains:
                if name not in self._domains:
                    self._domains[name] = self._ensure_domain(name)

    def tags(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """The labels of tags.

        If several tags are in a classification that allows only one, all but the first become tags
        of Lumos.
        """
        labels, taken = [], set()
        for name in dict.fromkeys(names):
            label = _label(_TAGS, self._tags.get(name) or lumos_fqn(name))
            classification = self._exclusive.get(label["tagFQN"])
            if classification in taken:
                with self._lock:
                    label = _label(_TAGS, self._ensure_lumos_tag(name))
            elif classification is not None:
                taken.add(classification)
            labels.append(label)
        return labels

    def without_exclusive_duplicates(
        self, labels: Iterable[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Remove all but the first tag of each classification that allows only one."""
        first_labels: dict[str, dict[str, Any]] = {}
        for label in labels:
            first_labels.setdefault(self._exclusive.get(label["tagFQN"]) or label["tagFQN"], label)
        return list(first_labels.values())

    def term(self, name: str) -> dict[str, Any]:
        return _label(_TERMS, self._terms.get(name) or lumos_fqn(name))

    def owner(self, owner: Owner) -> dict[str, Any]:
        key = _owner_key(owner)
        reference = {"type": key[0], "name": key[1]}
        return {"id": self._owners[key], **reference} if key in self._owners else reference

    def domain(self, name: str) -> dict[str, Any]:
        if name in self._domains:
            id, fqn = self._domains[name]
            return {"id": id, "type": "domain", "fullyQualifiedName": fqn}
        return {"type": "domain", "fullyQualifiedName": join_fqn(shorten_name(encode_name(name)))}

    def find(self, source: str, fqn: str) -> str | None:
        """The qualified name of a tag or term of another server on this server, or None.

        Missing tags and terms of Lumos are created; others may be created later.
        """
        label = {"tagFQN": fqn, "source": source}
        is_tag = source == _TAGS
        name = (tag_of if is_tag else term_of)(label) or fqn
        known = self._tags if is_tag else self._terms
        with self._lock:
            if name not in known and is_qualified(name):
                route = "tags" if is_tag else "glossaryTerms"
                if not any(self._server.named(route, each) for each in (name, lumos_fqn(name))):
                    return None
            self.ensure(tags=[name] if is_tag else (), terms=() if is_tag else [name])
            return known[name]

    def product(self, fqn: str) -> dict[str, Any] | None:
        """The data product with a qualified name, or None; missing ones are not created."""
        with self._lock:
            if fqn not in self._products:
                entity = self._server.named("dataProducts", fqn)
                if entity is None:
                    return None
                reference = {"id": entity["id"], "type": "dataProduct", "fullyQualifiedName": fqn}
                self._products[fqn] = reference
            return self._products[fqn]

    def clear_cache(self) -> None:
        with self._lock:
            self._tags.clear()
            self._terms.clear()
            self._exclusive.clear()
            self._owners.clear()
            self._domains.clear()
            self._products.clear()
            self._parents.clear()

    def _ensure_tag(self, name: str) -> str:
        existing = self._find_qualified("tags", name)
        if existing is None:
            return self._ensure_lumos_tag(name)
        classification = existing["classification"]["fullyQualifiedName"]
        details = self._server.named("classifications", classification) or {}
        if details.get("mutuallyExclusive"):
            self._exclusive[existing["fullyQualifiedName"]] = classification
        return str(existing["fullyQualifiedName"])

    def _ensure_lumos_tag(self, name: str) -> str:
        self._ensure_parent("classifications")
        # Creating a deleted tag restores it.
        if self._server.named("tags", lumos_fqn(name)) is None:
            body = {
                "classification": LUMOS,
                "name": shorten_name(encode_name(name)),
                "description": PLACEHOLDER_TEXT,
            }
            self._server.put("tags", body)
        return lumos_fqn(name)

    def known_term(self, name: str) -> Any:
        """The term with a name in Lumos, or None."""
        existing = self._find_qualified("glossaryTerms", name, include="all")
        is_shortened = shorten_name(encode_name(name)) != encode_name(name)
        for fqn in (lumos_fqn(name), join_fqn(LUMOS, _with_digest(name))):
            if existing is None:
                term = self._server.named("glossaryTerms", fqn, include="all")
                if term and (is_shortened or term_named(term["fullyQualifiedName"]) == name):
                    existing = term
        return existing

    def make_term(self, name: str, *, stored_name: str | None = None, **fields: Any) -> Any:
        """Create a term, with another name if an existing one only differs by case."""
        self._ensure_parent("glossaries")
        plain = stored_name or _term_name(name)
        body = {"glossary": LUMOS, "name": plain, "description": PLACEHOLDER_TEXT, **fields}
        try:
            return self._server.put("glossaryTerms", body)
        except CatalogError as problem:
            if problem.status != _BAD_REQUEST or "already exists" not in str(problem):
                raise
            return self._server.put("glossaryTerms", {**body, "name": _with_digest(name)})

    def _ensure_owner(self, owner: Owner) -> str:
        type, name = _owner_key(owner)
        existing = self._server.named(f"{type}s", join_fqn(name), include="all")
        if existing is None or existing.get("deleted"):
            if type == "user":
                existing = self.make_user(owner.name, description=PLACEHOLDER_TEXT)
            else:
                body = {"name": name, "teamType": "Group", "description": PLACEHOLDER_TEXT}
                existing = self._server.put("teams", body)
        return str(existing["id"])

    def make_user(self, name: str, email: str | None = None, **fields: Any) -> Any:
        """Create a user; if another user has the mail address, a placeholder is used."""
        body = {"name": user_name(name), "email": email or placeholder_email(name), **fields}
        try:
            return self._server.put("users", body)
        except CatalogError as problem:
            if email is None or problem.status not in (_BAD_REQUEST, _CONFLICT):
                raise
            return self._server.put("users", {**body, "email": placeholder_email(name)})

    def _ensure_domain(self, name: str) -> tuple[str, str]:
        existing = self._find_qualified("domains", name)
        if existing is None:
            plain = shorten_name(encode_name(name))
            existing = self._server.named("domains", join_fqn(plain)) or self._server.put(
                "domains",
                {"name": plain, "domainType": "Aggregate", "description": PLACEHOLDER_TEXT},
            )
        return str(existing["id"]), str(existing["fullyQualifiedName"])

    def _find_qualified(self, route: str, name: str, **query: Any) -> Any:
        """The entity with exactly this qualified name, unless it belongs to Lumos."""
        return self._server.named(route, name, **query) if is_qualified(name) else None

    def _ensure_parent(self, route: str) -> None:
        """Create the classification or glossary of Lumos if it is missing."""
        if route not in self._parents:
            if self._server.named(route, LUMOS) is None:
                self._server.put(route, {"name": LUMOS, "description": PLACEHOLDER_TEXT})
            self._parents.add(route)


def is_qualified(name: str) -> bool:
    """Whether a name is the qualified name of a label that does not belong to Lumos."""
    parts = split_fqn(name)
    if len(parts) == 1 or parts[0] == LUMOS or not all(parts) or join_fqn(*parts) != name:
        return False
    return all(encode_name(part) == part for part in parts)


def _label(source: str, fqn: str) -> dict[str, Any]:
    return {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}


def lumos_fqn(name: str) -> str:
    """The qualified name of a tag or term of Lumos."""
    return join_fqn(LUMOS, shorten_name(encode_name(name)))


def _term_name(name: str) -> str:
    """The stored name of a term; a name that seems to end with a hash gets one as well."""
    match = _NAME_WITH_DIGEST.match(encode_name(name))
    is_misread = match is not None and _digest(decode_name(match["name"])) == match["digest"]
    return _with_digest(name) if is_misread else shorten_name(encode_name(name))


def _with_digest(name: str) -> str:
    return shorten_name(f"{encode_name(name)}~{_digest(name)}")


def _unqualified_name(fqn: str) -> str:
    parts = split_fqn(fqn)
    return decode_name(parts[1]) if len(parts) == 2 and parts[0] == LUMOS else fqn


def _owner_key(owner: Owner) -> tuple[str, str]:
    is_team = owner.kind == "group"
    return ("team", team_name(owner.name)) if is_team else ("user", user_name(owner.name))


def _digest(text: str, length: int = 8) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
