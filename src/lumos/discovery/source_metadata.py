"""Metadata that a source reports in addition to schemas, merged with what people wrote.

The last reported metadata is kept in the properties, prefixed with the platform's name. So it is
known whether a description came from the source, and follows it, or from a person, and stays.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lumos.annotations.rules import COMMENT_PROPERTY, OWNER_PROPERTY, source_properties
from lumos.model.dataset import Dataset, Documentation, Location, Owner, Ownership, Properties
from lumos.model.discovery import OF_TABLE, FoundDataset, SourceMetadata

SOURCE_ASPECTS: Final = ("documentation", "ownership", "definition", "properties")
_MOST_TYPES: Final = 3
# Properties that change with every commit are not reported as changes.
_CHANGES_ALWAYS: Final = {f"{OF_TABLE}version", f"{OF_TABLE}operation"}
_LABELS: Final = {COMMENT_PROPERTY: "description", OWNER_PROPERTY: "owner"}


def apply_source_metadata(
    dataset: Dataset, metadata: SourceMetadata, *, before: Dataset | None = None
) -> Dataset:
    """The dataset with the metadata of its source; `before` has the metadata of the last scan."""
    before = before or dataset
    earlier = last_source_properties(before)
    return msgspec.structs.replace(
        dataset,
        documentation=_documentation(
            before.documentation, earlier.get(COMMENT_PROPERTY), metadata.description
        ),
        ownership=_ownership(before.ownership, earlier.get(OWNER_PROPERTY), metadata.owner),
        definition=metadata.definition,
        properties=_properties(before, metadata),
    )


def is_unchanged(
    found: FoundDataset, properties: Properties | None, location: Location | None, platform: str
) -> bool:
    """Whether the metadata of a source is the same as recorded."""
    return (
        _own_properties(properties, platform) == source_properties(found.told or SourceMetadata())
        and location is not None
        and location.partitioning == found.location.partitioning
    )


def is_same_metadata(before: Dataset, now: Dataset) -> bool:
    """Whether the metadata of a source is the same, apart from what changes with every commit."""
    old, new = last_source_properties(before), last_source_properties(now)
    return _partitioning(before) == _partitioning(now) and all(
        old.get(name) == new.get(name) for name in (old.keys() | new.keys()) - _CHANGES_ALWAYS
    )


def describe_differences(before: Dataset, found: FoundDataset) -> str:
    """The metadata that changed, as text: `description, owner changed`."""
    changed = list(dict.fromkeys(_changed(before, found, found.told or SourceMetadata())))
    types = list(_other_native_types(before, found))
    parts = [f"{', '.join(changed)} changed"] if changed else []
    parts += [f"type of {each}" for each in types[:_MOST_TYPES]]
    if (more := len(types) - _MOST_TYPES) > 0:
        parts.append(f"{more} more types changed")
    return "; ".join(parts)


def _other_native_types(before: Dataset, found: FoundDataset) -> Iterator[str]:
    """Columns whose native type changed, but not their type: `a changed: json -> jsonb`."""
    for field in found.schema.fields:
        old = before.schema.field(field.name) if before.schema else None
        if old and old.type == field.type and old.native_type != field.native_type:
            yield f"{field.name} changed: {old.native_type} -> {field.native_type}"


def _changed(before: Dataset, found: FoundDataset, metadata: SourceMetadata) -> Iterator[str]:
    if before.format != found.format:
        yield "kind"
    if before.definition != metadata.definition:
        yield "query"
    if _partitioning(before) != found.location.partitioning:
        yield "partitioning"
    old, new = last_source_properties(before), source_properties(metadata)
    for name in sorted((old.keys() | new.keys()) - _CHANGES_ALWAYS):
        if old.get(name) != new.get(name):
            yield _LABELS.get(name, name.replace("constraint.", "constraint "))


def _partitioning(dataset: Dataset) -> str | None:
    return dataset.location.partitioning if dataset.location else None


def last_source_properties(dataset: Dataset) -> Properties:
    """The last reported metadata, without the prefix of the platform."""
    return _own_properties(dataset.properties, dataset.platform)


def _own_properties(properties: Properties | None, platform: str) -> Properties:
    mark = f"{platform}."
    return {
        name.removeprefix(mark): text
        for name, text in (properties or {}).items()
        if name.startswith(mark)
    }


def _properties(dataset: Dataset, metadata: SourceMetadata) -> Properties | None:
    mark = f"{dataset.platform}."
    others = {
        name: text for name, text in (dataset.properties or {}).items() if not name.startswith(mark)
    }
    return {
        **others,
        **{f"{mark}{name}": text for name, text in source_properties(metadata).items()},
    } or None


def _documentation(
    known: Documentation | None, earlier: str | None, description: str | None
) -> Documentation | None:
    written = known or Documentation()
    if written.description is not None and written.description != earlier:
        return known
    followed = msgspec.structs.replace(written, description=description)
    return None if followed == Documentation() and known is None else followed


def _ownership(
    known: Ownership | None, earlier: str | None, owner: Owner | None
) -> Ownership | None:
    current = known.owners if known else ()
    others = [each for each in current if not _is_owner_named(each, earlier)]
    owners = [owner, *others] if owner is not None and owner not in others else others
    return Ownership(owners=tuple(owners)) if owners or known is not None else None


def _is_owner_named(owner: Owner, earlier: str | None) -> bool:
    return earlier is not None and owner == Owner(name=earlier, kind=owner.kind)
