"""Terms of people's own glossaries: things of OpenMetadata that Lumos has a kind for.

What a term of Lumos has no place for, such as synonyms, tags and reviewers, it carries along.
"""

from typing import Any, Final

import msgspec

from lumos.catalogs.openmetadata import descriptions as words
from lumos.catalogs.openmetadata import users as people
from lumos.catalogs.openmetadata.entity_kinds import CATALOG, THINGS, Record, name_of
from lumos.catalogs.openmetadata.labels import OWN, domain_of, owner_of, user_name
from lumos.catalogs.openmetadata.names import joined, meant, split
from lumos.model.catalog import CatalogEntity, GlossaryTerm
from lumos.model.dataset import Owner
from lumos.model.json_codec import from_plain, to_plain

TYPE: Final = "glossaryTerm"
_NAME: Final = "fullyQualifiedName"
_EXACT: Final = "lumos"
_ALLOWED: Final = frozenset({*THINGS[TYPE].fields, "extension", "declared", "deleted", _NAME})


def is_named_so(name: str) -> bool:
    """Whether a term of that name would be in a glossary of people's own."""
    parts = split(name)
    return len(parts) > 1 and parts[0] != OWN and all(parts) and joined(*parts) == name


def is_native(item: Any) -> bool:
    """Whether an item is such a term, as reading tells it."""
    if not isinstance(item, GlossaryTerm):
        return False
    record = item.raw.get(CATALOG)
    if not isinstance(record, dict) or not record.keys() <= _ALLOWED:
        return False
    return record.get(_NAME) == item.name and is_named_so(item.name)


def as_thing(term: GlossaryTerm) -> CatalogEntity:
    """The thing that a term is."""
    carried = term.raw[CATALOG]
    record = {key: value for key, value in carried.items() if key != _NAME}
    told = _reported(term.name, record)
    _put(record, "displayName", term.display_name)
    if term.definition != told.definition:
        _put(record, "description", people.sent(term.definition))
    if term.owners != told.owners:
        known = {_owner(each).name: each for each in record.get("owners") or ()}
        owners = [known.get(name) or _user(name) for name in term.owners]
        # The server takes many users or one team: the term itself says whoever else there is.
        users = [each for each in owners if each["type"] == "user"]
        _put(record, "owners", users or owners[:1])
    if term.domain != told.domain:
        domains = [] if term.domain is None else [{"type": "domain", _NAME: term.domain}]
        _put(record, "domains", domains)
    if term.related != told.related:
        related = [{"type": TYPE, _NAME: name} for name in term.related]
        _put(
            record,
            "relatedTerms",
            [{"relationType": "relatedTo", "term": each} for each in related],
        )
    thing = CatalogEntity(urn=name_of(TYPE, term.name), raw={CATALOG: record})
    if _read(thing) == term:
        return thing
    return CatalogEntity(urn=thing.urn, raw={CATALOG: record, _EXACT: to_plain(term)})


def as_term(thing: CatalogEntity) -> GlossaryTerm:
    """The term that a thing is."""
    kept = thing.raw.get(_EXACT)
    if kept is None:
        return _read(thing)
    exact = from_plain(kept, GlossaryTerm)
    if as_thing(exact).raw[CATALOG] == thing.raw[CATALOG]:
        return exact
    read = _read(thing)
    carried = {**exact.raw, **read.raw}
    return msgspec.structs.replace(read, properties=exact.properties, raw=carried)


def _read(thing: CatalogEntity) -> GlossaryTerm:
    name = thing.urn.split(":", 2)[2]
    record: Record = thing.raw[CATALOG]
    rest = {key: value for key, value in record.items() if key != "displayName"}
    term = _reported(name, record)
    return msgspec.structs.replace(term, raw={CATALOG: {_NAME: name, **rest}})


def _reported(name: str, record: Record) -> GlossaryTerm:
    """What a record says in the words of Lumos."""
    parts, domains = split(name), record.get("domains") or ()
    related = (each.get("term", each)[_NAME] for each in record.get("relatedTerms") or ())
    return GlossaryTerm(
        name=name,
        display_name=record.get("displayName"),
        definition=words.decoded(record.get("description") or "") or None,
        parent=joined(*parts[:-1]) if len(parts) > 2 else None,
        related=tuple(sorted(related)),
        domain=domain_of(domains[0]) if domains else None,
        owners=tuple(_owner(each).name for each in record.get("owners") or ()),
    )


def _owner(reference: Record) -> Owner:
    return owner_of({**reference, "name": meant(split(reference[_NAME])[0])})


def _user(name: str) -> Record:
    return {"type": "user", _NAME: joined(user_name(name))}


def _relation(name: str) -> Record:
    return {"relationType": "relatedTo", "term": {"type": TYPE, _NAME: name}}


def _put(record: Record, key: str, value: Any) -> None:
    if value:
        record[key] = value
    else:
        record.pop(key, None)
