"""What a place tells of its datasets beside their schemas, joined with what people wrote.

What was told last stands in the properties, under the platform's name. So it can be seen whether a
description is the place's own, which follows the place, or a person's, which stays.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lumos.annotations.rules import owner_name, owner_of
from lumos.model.dataset import Dataset, Documentation, Location, Owner, Ownership, Properties
from lumos.model.discovery import OF_TABLE, FoundDataset, SourceMetadata
from lumos.model.words import Key

TOLD_ASPECTS: Final = ("documentation", "ownership", "definition", "properties")
_COMMENT: Final = "comment"
_OWNER: Final = "owner"
_NAMED: Final = 3
# What is another with every commit tells nobody anything.
_EVERY_TIME: Final = {f"{OF_TABLE}version", f"{OF_TABLE}operation"}
_WORDS: Final = {_COMMENT: "description", _OWNER: "owner"}


def tell(dataset: Dataset, told: SourceMetadata, *, before: Dataset | None = None) -> Dataset:
    """The dataset with what its place tells now, where it said something else `before`."""
    before = before or dataset
    said = told_before(before)
    return msgspec.structs.replace(
        dataset,
        documentation=_documentation(before.documentation, said.get(_COMMENT), told.description),
        ownership=_ownership(before.ownership, said.get(_OWNER), told.owner),
        definition=told.definition,
        properties=_properties(before, told),
    )


def is_as_told(
    found: FoundDataset, properties: Properties | None, location: Location | None, platform: str
) -> bool:
    """Whether a place tells what is on record of a dataset already."""
    return (
        _told_in(properties, platform) == _facts(found.told or SourceMetadata())
        and location is not None
        and location.partitioning == found.location.partitioning
    )


def says_as_before(before: Dataset, now: Dataset) -> bool:
    """Whether nothing that is told changed, but for what does so by itself."""
    old, new = told_before(before), told_before(now)
    return _partitioning(before) == _partitioning(now) and all(
        old.get(name) == new.get(name) for name in (old.keys() | new.keys()) - _EVERY_TIME
    )


def differences(before: Dataset, found: FoundDataset) -> str:
    """What of that which is told changed, in words: `description, owner changed`."""
    changed = list(dict.fromkeys(_changed(before, found, found.told or SourceMetadata())))
    types = list(_other_native_types(before, found))
    parts = [f"{', '.join(changed)} changed"] if changed else []
    parts += [f"type of {each}" for each in types[:_NAMED]]
    if (more := len(types) - _NAMED) > 0:
        parts.append(f"{more} more types changed")
    return "; ".join(parts)


def told_words(told: SourceMetadata, platform: str) -> dict[Key, str]:
    """What a place tells, as words about its dataset."""
    words = {Key("", "property", f"{platform}.{name}"): text for name, text in _facts(told).items()}
    if told.description is not None:
        words[Key("", "description")] = told.description
    if told.owner is not None:
        words[Key("", "owner", owner_name(told.owner))] = ""
    return words


def is_of_place(dataset: Dataset, key: Key) -> bool:
    """Whether the place itself told last what a dataset says under a key."""
    said = told_before(dataset)
    match key.slot:
        case "description":
            known = dataset.documentation
            return known is not None and known.description == said.get(_COMMENT)
        case "owner":
            return _is_told(owner_of(key.name), said.get(_OWNER))
        case "property":
            return key.name.startswith(f"{dataset.platform}.")
        case _:
            return False


def _other_native_types(before: Dataset, found: FoundDataset) -> Iterator[str]:
    """Columns that only the place itself tells apart: `a changed: json -> jsonb`."""
    for field in found.schema.fields:
        old = before.schema.field(field.name) if before.schema else None
        if old and old.type == field.type and old.native_type != field.native_type:
            yield f"{field.name} changed: {old.native_type} -> {field.native_type}"


def _changed(before: Dataset, found: FoundDataset, told: SourceMetadata) -> Iterator[str]:
    if before.format != found.format:
        yield "kind"
    if before.definition != told.definition:
        yield "query"
    if _partitioning(before) != found.location.partitioning:
        yield "partitioning"
    old, new = told_before(before), _facts(told)
    for name in sorted((old.keys() | new.keys()) - _EVERY_TIME):
        if old.get(name) != new.get(name):
            yield _WORDS.get(name, name.replace("constraint.", "constraint "))


def _partitioning(dataset: Dataset) -> str | None:
    return dataset.location.partitioning if dataset.location else None


def _facts(told: SourceMetadata) -> Properties:
    facts = {
        **told.properties,
        _COMMENT: told.description,
        _OWNER: None if told.owner is None else told.owner.name,
    }
    return {name: text for name, text in facts.items() if text is not None}


def told_before(dataset: Dataset) -> Properties:
    """What the place told last, without the platform's name before it."""
    return _told_in(dataset.properties, dataset.platform)


def _told_in(properties: Properties | None, platform: str) -> Properties:
    mark = f"{platform}."
    return {
        name.removeprefix(mark): text
        for name, text in (properties or {}).items()
        if name.startswith(mark)
    }


def _properties(dataset: Dataset, told: SourceMetadata) -> Properties | None:
    mark = f"{dataset.platform}."
    others = {
        name: text for name, text in (dataset.properties or {}).items() if not name.startswith(mark)
    }
    return {**others, **{f"{mark}{name}": text for name, text in _facts(told).items()}} or None


def _documentation(
    known: Documentation | None, said: str | None, told: str | None
) -> Documentation | None:
    written = known or Documentation()
    if written.description is not None and written.description != said:
        return known
    followed = msgspec.structs.replace(written, description=told)
    return None if followed == Documentation() and known is None else followed


def _ownership(known: Ownership | None, said: str | None, told: Owner | None) -> Ownership | None:
    others = [owner for owner in (known.owners if known else ()) if not _is_told(owner, said)]
    owners = [told, *others] if told is not None and told not in others else others
    return Ownership(owners=tuple(owners)) if owners or known is not None else None


def _is_told(owner: Owner, said: str | None) -> bool:
    return said is not None and owner == Owner(name=said, kind=owner.kind)
