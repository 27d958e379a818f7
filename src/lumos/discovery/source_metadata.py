"""Metadata that a source reports in addition to schemas, merged with annotations of users.

The last reported metadata is stored as annotations of the data source. So the source updates a
description that it reported before, but not a description that a user wrote. The metadata is also
shown in the properties, prefixed with the platform's name.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from lumos.annotations.rules import (
    COMMENT_PROPERTY,
    OWNER_PROPERTY,
    owner_key,
    reported_properties,
    source_annotations,
    source_properties,
)
from lumos.model.annotation import (
    DATA_SOURCE,
    AnnotationKey,
    AnnotationMap,
    AnnotationsByReporter,
)
from lumos.model.dataset import Dataset, Documentation, Location, Owner, Ownership, Properties
from lumos.model.discovery import OF_TABLE, FoundDataset, SourceMetadata

SOURCE_ASPECTS: Final = ("documentation", "ownership", "definition", "properties")
_MAX_TYPES: Final = 3
# Properties that change with every commit are not reported as changes.
_VOLATILE_PROPERTIES: Final = {f"{OF_TABLE}version", f"{OF_TABLE}operation"}
_LABELS: Final = {COMMENT_PROPERTY: "description", OWNER_PROPERTY: "owner"}


class RecordedMetadata(NamedTuple):
    """The recorded metadata of a dataset: the aspects that its source reports, and annotations."""

    dataset: Dataset
    annotations: Mapping[str, AnnotationMap] = {}

    @property
    def properties(self) -> Properties:
        """The properties that the source reported last, without the prefix of the platform."""
        return reported_properties(self.annotations, self.dataset.platform)


def apply_source_metadata(
    dataset: Dataset, metadata: SourceMetadata, *, before: RecordedMetadata | None = None
) -> Dataset:
    """The dataset with the metadata of its source; `before` has the metadata of the last scan."""
    recorded, annotations = before or RecordedMetadata(dataset)
    earlier = annotations.get(DATA_SOURCE, {})
    return replace(
        dataset,
        documentation=_documentation(recorded.documentation, earlier, metadata.description),
        ownership=_ownership(recorded.ownership, earlier, metadata.owner),
        definition=metadata.definition,
        properties=_properties(recorded, earlier, metadata),
    )


def is_unchanged(
    found: FoundDataset,
    annotations: AnnotationsByReporter,
    location: Location | None,
    platform: str,
) -> bool:
    """Whether the metadata and partitioning of a source are exactly as recorded."""
    earlier = annotations.get(DATA_SOURCE, {})
    return (
        {key: each for key, each in earlier.items() if not key.path}
        == source_annotations(found.source_metadata or SourceMetadata(), platform)
        and location is not None
        and location.partitioning == found.location.partitioning
    )


def is_same_metadata(
    before: RecordedMetadata, found: FoundDataset, metadata: SourceMetadata
) -> bool:
    """Whether the metadata of a source is the same, except for values of the last commit."""
    old, new = before.properties, source_properties(metadata)
    return _partitioning(before.dataset) == found.location.partitioning and all(
        old.get(name) == new.get(name) for name in (old.keys() | new.keys()) - _VOLATILE_PROPERTIES
    )


def describe_differences(before: RecordedMetadata, found: FoundDataset) -> str:
    """Describe the metadata that changed, such as `description, owner changed`."""
    changed = list(
        dict.fromkeys(
            _find_changed_metadata(before, found, found.source_metadata or SourceMetadata())
        )
    )
    type_changes = list(_find_changed_native_types(before.dataset, found))
    parts = [f"{', '.join(changed)} changed"] if changed else []
    parts += [f"type of {each}" for each in type_changes[:_MAX_TYPES]]
    if (more := len(type_changes) - _MAX_TYPES) > 0:
        parts.append(f"{more} more types changed")
    return "; ".join(parts)


def _find_changed_native_types(before: Dataset, found: FoundDataset) -> Iterator[str]:
    """Describe columns that only changed their native type: `a changed: json -> jsonb`."""
    for field in found.schema.fields:
        old = before.schema.field(field.name) if before.schema else None
        if old and old.type == field.type and old.native_type != field.native_type:
            yield f"{field.name} changed: {old.native_type} -> {field.native_type}"


def _find_changed_metadata(
    before: RecordedMetadata, found: FoundDataset, metadata: SourceMetadata
) -> Iterator[str]:
    dataset = before.dataset
    if dataset.format != found.format:
        yield "kind"
    if dataset.definition != metadata.definition:
        yield "query"
    if _partitioning(dataset) != found.location.partitioning:
        yield "partitioning"
    old, new = before.properties, source_properties(metadata)
    for name in sorted((old.keys() | new.keys()) - _VOLATILE_PROPERTIES):
        if old.get(name) != new.get(name):
            yield _LABELS.get(name, name.replace("constraint.", "constraint "))


def _partitioning(dataset: Dataset) -> str | None:
    return dataset.location.partitioning if dataset.location else None


def _properties(
    dataset: Dataset, earlier: AnnotationMap, metadata: SourceMetadata
) -> Properties | None:
    others = {
        name: text
        for name, text in (dataset.properties or {}).items()
        if AnnotationKey("", "property", name) not in earlier
    }
    reported = source_properties(metadata).items()
    return {**others, **{f"{dataset.platform}.{name}": text for name, text in reported}} or None


def _documentation(
    recorded: Documentation | None, earlier: AnnotationMap, description: str | None
) -> Documentation | None:
    current = recorded or Documentation()
    reported = earlier.get(AnnotationKey("", "description"))
    is_from_source = reported is not None and current.description == reported.value
    if current.description is not None and not is_from_source:
        return recorded
    updated = replace(current, description=description)
    return None if updated == Documentation() and recorded is None else updated


def _ownership(
    recorded: Ownership | None, earlier: AnnotationMap, owner: Owner | None
) -> Ownership | None:
    current = recorded.owners if recorded else ()
    others = [
        each for each in current if AnnotationKey("", "owner", owner_key(each)) not in earlier
    ]
    owners = [owner, *others] if owner is not None and owner not in others else others
    return Ownership(owners=tuple(owners)) if owners or recorded is not None else None
