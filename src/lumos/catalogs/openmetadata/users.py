"""Terms, users, teams and jobs as OpenMetadata shows them."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lumos.catalogs.openmetadata import descriptions as words
from lumos.catalogs.openmetadata.labels import (
    OWN,
    domain_of,
    is_stand_in,
    owner_of,
    term_named,
    user_name,
)
from lumos.catalogs.openmetadata.names import meant
from lumos.catalogs.openmetadata.texts import shown_text
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Schedule

ROOT_TEAM: Final = "Organization"
_FIRST_USER: Final = "admin"
_MAIL: Final = re.compile(r"[a-z0-9_%+-]+(\.[a-z0-9_%+-]+)*@[a-z0-9-]+(\.[a-z0-9-]+)+")
_LONGEST_MAIL: Final = 127


def read_term(entity: Mapping[str, Any]) -> GlossaryTerm:
    parent, domains = entity.get("parent"), entity.get("domains") or ()
    related = (each.get("term", each) for each in entity.get("relatedTerms") or ())
    return GlossaryTerm(
        name=term_named(entity["fullyQualifiedName"]),
        display_name=entity.get("displayName"),
        definition=_words(entity),
        parent=term_named(parent["fullyQualifiedName"]) if parent else None,
        related=tuple(sorted(term_named(each["fullyQualifiedName"]) for each in related)),
        domain=domain_of(domains[0]) if domains else None,
        owners=tuple(owner_of(each).name for each in entity.get("owners") or ()),
    )


def is_bare_term(entity: Mapping[str, Any]) -> bool:
    """Whether a term is there only because datasets are labelled with it."""
    bare = GlossaryTerm(name=term_named(entity["fullyQualifiedName"]))
    return bool(entity["glossary"]["name"] == OWN and read_term(entity) == bare)


def term_facts(term: GlossaryTerm) -> dict[str, Any]:
    return {"description": sent(term.definition), **named(term.display_name)}


def read_user(entity: Mapping[str, Any]) -> User:
    email = entity.get("email")
    return User(
        name=meant(entity["name"]),
        display_name=entity.get("displayName"),
        email=None if is_stand_in(email) else email,
    )


def is_bare_user(entity: Mapping[str, Any]) -> bool:
    """Whether a user is there only because datasets are owned by it."""
    return read_user(entity) == User(name=meant(entity["name"]))


def is_built_in(entity: Mapping[str, Any]) -> bool:
    """Whether a user or team came with the server."""
    is_first = entity.get("isAdmin") and entity["name"] == _FIRST_USER
    return bool(entity.get("isBot") or is_first or entity.get("teamType") == ROOT_TEAM)


def has_account(name: str) -> bool:
    """Whether OpenMetadata can have a user of just that name."""
    return user_name(name) == name


def mail_of(user: User) -> str | None:
    """The address of a user where OpenMetadata takes it."""
    email = user.email or ""
    is_taken = _MAIL.fullmatch(email) and len(email) <= _LONGEST_MAIL
    return email if is_taken and not is_stand_in(email) else None


def read_group(entity: Mapping[str, Any]) -> Group:
    return Group(
        name=meant(entity["name"]),
        display_name=entity.get("displayName"),
        description=_words(entity),
        email=entity.get("email"),
        members=tuple(sorted(meant(each["name"]) for each in entity.get("users") or ())),
    )


def is_bare_group(entity: Mapping[str, Any]) -> bool:
    """Whether a team is there only because datasets are owned by it."""
    is_placeholder = entity.get("isJoinable") is False
    return is_placeholder and read_group(entity) == Group(name=meant(entity["name"]))


def group_facts(group: Group) -> dict[str, Any]:
    email = group.email or ""
    mail = {"email": email} if _MAIL.fullmatch(email) and len(email) <= _LONGEST_MAIL else {}
    return {"description": sent(group.description), **named(group.display_name), **mail}


def read_job(entity: Mapping[str, Any]) -> Job:
    """As much of a job as is shown; the rest of it is only kept."""
    cron = entity.get("scheduleInterval")
    return Job(
        urn="",
        name=entity.get("displayName") or "",
        platform="",
        description=_words(entity),
        schedule=Schedule(cron=cron) if cron else None,
    )


def job_facts(job: Job) -> dict[str, Any]:
    cron = shown_text(job.schedule.cron) if job.schedule is not None else ""
    schedule = {"scheduleInterval": cron} if cron else {}
    return {"description": sent(job.description), **named(job.name), **schedule}


def bare(item: Any) -> Any:
    """An item of that name of which nothing is said."""
    if isinstance(item, Job):
        return Job(urn=item.urn, name=item.name, platform=item.platform)
    if isinstance(item, CatalogEntity):
        return CatalogEntity(urn=item.urn)
    return type(item)(name=item.name)


def since(exact: Any, then: Any, now: Any) -> Any:
    """The exact item, with what people changed since it was written."""
    changed = {
        field: getattr(now, field)
        for field in now.__struct_fields__
        if getattr(now, field) != getattr(then, field)
    }
    schedule = changed.get("schedule")
    if schedule is not None and exact.schedule is not None:
        changed["schedule"] = msgspec.structs.replace(exact.schedule, cron=schedule.cron)
    return msgspec.structs.replace(exact, **changed)


def sent(text: str | None) -> str:
    return words.encoded(words.kept(text or ""))


def named(name: str | None) -> dict[str, str]:
    return {"displayName": shown_text(name)} if name else {}


def _words(entity: Mapping[str, Any]) -> str | None:
    return words.decoded(entity.get("description") or "") or None
