"""Decides which annotation applies if reporters disagree, and applies annotations to datasets.

People rank before tools, tools before the data source, and inferred annotations come last. Within a
rank, the newest annotation applies. An annotation without a value suppresses those of lower rank.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lumos.errors import MisuseError
from lumos.model.annotation import (
    DATA_SOURCE,
    FILE,
    IMPORT,
    INFERRED,
    USER,
    Annotation,
    AnnotationKey,
    AnnotationsByReporter,
    Slot,
)
from lumos.model.dataset import (
    Dataset,
    Documentation,
    Governance,
    Owner,
    Ownership,
    Properties,
    Schedule,
)
from lumos.model.discovery import SourceMetadata
from lumos.model.json_codec import from_json, to_json
from lumos.model.paths import column_of
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import field_paths, nested_parts
from lumos.model.types import quoted_name

_RANK_OF_TOOLS: Final = 1
_RANKS: Final = {USER: 0, IMPORT: 0, DATA_SOURCE: 2, INFERRED: 3}
DOC_SLOTS: Final[tuple[Slot, ...]] = ("description", "business_context", "domain")
# The slots of labels, and the attributes of datasets and fields that contain them.
LABELS: Final[Mapping[Slot, str]] = {"tag": "tags", "term": "terms", "compliance": "compliance"}
# The properties `<platform>.comment` and `<platform>.owner` contain what the source reported last.
COMMENT_PROPERTY: Final = "comment"
OWNER_PROPERTY: Final = "owner"


class ResolvedAnnotation(NamedTuple):
    """The annotation that applies, and its reporter."""

    reporter: str
    annotation: Annotation


def resolve(annotations: AnnotationsByReporter, key: AnnotationKey) -> ResolvedAnnotation | None:
    """Return the annotation that applies to a key."""
    candidates = [
        ResolvedAnnotation(reporter, reported[key])
        for reporter, reported in annotations.items()
        if key in reported
    ]
    return min(candidates, key=_precedence, default=None)


def resolve_value(annotations: AnnotationsByReporter, key: AnnotationKey) -> str | None:
    """Return the value that applies to a key; None if there is none or it is suppressed."""
    resolved = resolve(annotations, key)
    return None if resolved is None else resolved.annotation.value


def _precedence(candidate: ResolvedAnnotation) -> tuple[int, float, str]:
    at = candidate.annotation.at
    return _rank(candidate.reporter), -at.timestamp() if at else 0.0, candidate.reporter


def _rank(reporter: str) -> int:
    return 0 if reporter.startswith(FILE) else _RANKS.get(reporter, _RANK_OF_TOOLS)


def owner_key(owner: Owner) -> str:
    """The name in the key of an owner's annotation: type, kind and name of the owner."""
    return f"{owner.type}:{owner.kind}:{owner.name}"


def owner_from_key(name: str) -> Owner:
    """Parse the name that `owner_key` returns."""
    type, kind, owner = name.split(":", 2)
    return Owner(name=owner, kind="group" if kind == "group" else "user", type=type)


# Annotations of datasets


def annotations_of(dataset: Dataset) -> dict[AnnotationKey, str]:
    """The current values of a dataset and its fields, by key."""
    documentation, governance = dataset.documentation, dataset.governance
    values: dict[AnnotationKey, str] = {}
    for slot in DOC_SLOTS:
        if (text := getattr(documentation, slot, None)) is not None:
            values[AnnotationKey("", slot)] = text
    for owner in dataset.ownership.owners if dataset.ownership else ():
        values[AnnotationKey("", "owner", owner_key(owner))] = ""
    for slot, attribute in LABELS.items():
        values |= {AnnotationKey("", slot, name): "" for name in getattr(governance, attribute, ())}
    for name, text in (dataset.properties or {}).items():
        values[AnnotationKey("", "property", name)] = text
    if dataset.schedule is not None:
        values[AnnotationKey("", "schedule")] = to_json(dataset.schedule).decode()
    return values if dataset.schema is None else values | field_annotations(dataset.schema)


def field_annotations(schema: Schema) -> dict[AnnotationKey, str]:
    """The current values of the fields of a schema, by key."""
    values: dict[AnnotationKey, str] = {}
    for field in schema.fields:
        # Checked first for speed: most of the millions of fields have no annotations.
        if _is_annotated(field):
            _add_field(values, field, quoted_name(field.name))
        for nested in field.nested:
            if _is_annotated(nested):
                _add_field(values, nested, nested.path)
    return values


def _is_annotated(field: Field | NestedField) -> bool:
    return bool(
        field.description or field.tags or field.terms or field.compliance or field.properties
    )


def _add_field(values: dict[AnnotationKey, str], field: Field | NestedField, path: str) -> None:
    if field.description:
        values[AnnotationKey(path, "description")] = field.description
    for slot, attribute in LABELS.items():
        values |= {AnnotationKey(path, slot, name): "" for name in getattr(field, attribute)}
    for name, text in field.properties.items():
        values[AnnotationKey(path, "property", name)] = text


def keys_of_missing_fields(
    schema: Schema | None, annotations: AnnotationsByReporter
) -> Iterator[AnnotationKey]:
    """The keys of annotations on fields that are not in the schema."""
    keys = {key for reported in annotations.values() for key in reported if key.path}
    if keys:
        present = frozenset(field_paths(schema)) if schema is not None else frozenset()
        yield from sorted(key for key in keys if key.path not in present)


# Annotations that the data source reports


def claimed_keys(annotations: AnnotationsByReporter) -> set[AnnotationKey]:
    """The keys that reporters other than the data source have annotated."""
    return {
        key
        for reporter, reported in annotations.items()
        if reporter != DATA_SOURCE
        for key in reported
    }


def source_properties(metadata: SourceMetadata) -> Properties:
    """The properties that a data source reports, including its comment and its owner."""
    properties = {
        **metadata.properties,
        COMMENT_PROPERTY: metadata.description,
        OWNER_PROPERTY: None if metadata.owner is None else metadata.owner.name,
    }
    return {name: text for name, text in properties.items() if text is not None}


def source_annotations(metadata: SourceMetadata, platform: str) -> dict[AnnotationKey, Annotation]:
    """The metadata that a data source reports about a dataset as a whole, as annotations."""
    annotations = {
        AnnotationKey("", "property", f"{platform}.{name}"): Annotation(value=text)
        for name, text in source_properties(metadata).items()
    }
    if metadata.description is not None:
        annotations[AnnotationKey("", "description")] = Annotation(value=metadata.description)
    if metadata.owner is not None:
        annotations[AnnotationKey("", "owner", owner_key(metadata.owner))] = Annotation()
    return annotations


def reported_properties(annotations: AnnotationsByReporter, platform: str) -> Properties:
    """The properties that the data source reported last, without the prefix of the platform."""
    return {
        key.name.removeprefix(f"{platform}."): each.value
        for key, each in annotations.get(DATA_SOURCE, {}).items()
        if not key.path and key.slot == "property" and each.value is not None
    }


def source_annotations_in(
    dataset: Dataset, annotations: AnnotationsByReporter
) -> dict[AnnotationKey, Annotation]:
    """Return the source's annotations of a dataset that comes from a snapshot or a catalog.

    These are properties that start with the platform's name. A property that another reporter has
    annotated in this store keeps the value that the source reported last.
    """
    platform, claimed = dataset.platform, claimed_keys(annotations)
    earlier_reports = annotations.get(DATA_SOURCE, {})
    properties = {
        name.removeprefix(f"{platform}."): earlier_reports[key].value if key in claimed else text
        for name, text in (dataset.properties or {}).items()
        if name.startswith(f"{platform}.")
        and ((key := AnnotationKey("", "property", name)) not in claimed or key in earlier_reports)
    }
    if not properties:
        return {}
    owner = properties.pop(OWNER_PROPERTY, None)
    metadata = SourceMetadata(
        description=properties.pop(COMMENT_PROPERTY, None),
        owner=None if owner is None else _named_owner(owner, dataset, annotations),
        properties={name: text for name, text in properties.items() if text is not None},
    )
    return source_annotations(metadata, platform)


def _named_owner(name: str, dataset: Dataset, annotations: AnnotationsByReporter) -> Owner:
    """The owner with a name; the property does not say whether the owner is a user or a group."""
    user, group = Owner(name=name), Owner(name=name, kind="group")
    known = {*(dataset.ownership.owners if dataset.ownership else ())}
    for reported in annotations.values():
        known |= {owner_from_key(key.name) for key in reported if key.slot == "owner"}
    return group if group in known and user not in known else user


def check_editable_properties(dataset: Dataset, names: Iterable[str]) -> None:
    """Raise an error for properties of the data source, which the next scan would overwrite."""
    prefix = f"{dataset.platform}."
    has_source_properties = any(name.startswith(prefix) for name in dataset.properties or {})
    if dataset.definition is None and not has_source_properties:
        return
    for name in names:
        if name.startswith(prefix):
            raise MisuseError(
                f"Cannot edit '{name}': properties starting with '{prefix}' come from the data "
                "source. Choose another name."
            )


# Applying annotations to datasets and schemas


def annotate(dataset: Dataset, changes: Mapping[AnnotationKey, str | None]) -> Dataset:
    """Set values of a dataset by key; None removes a value."""
    own = {key: value for key, value in changes.items() if not key.path}
    schema = dataset.schema
    if schema is not None and len(own) < len(changes):
        schema = annotate_schema(schema, changes)
    return msgspec.structs.replace(
        dataset,
        schema=schema,
        documentation=_documentation(dataset.documentation, own),
        ownership=_ownership(dataset.ownership, own),
        governance=_governance(dataset.governance, own),
        properties=_properties(dataset.properties, own),
        schedule=_schedule(dataset.schedule, own),
    )


def _documentation(
    before: Documentation | None, changes: Mapping[AnnotationKey, str | None]
) -> Documentation | None:
    texts = {key.slot: value for key, value in changes.items() if key.slot in DOC_SLOTS}
    if not texts:
        return before
    after = msgspec.structs.replace(before or Documentation(), **texts)
    return None if before is None and after == Documentation() else after


def _ownership(
    before: Ownership | None, changes: Mapping[AnnotationKey, str | None]
) -> Ownership | None:
    owner_changes = {
        owner_from_key(key.name): value for key, value in changes.items() if key.slot == "owner"
    }
    if not owner_changes:
        return before
    owners = _update_members(before.owners if before else (), owner_changes)
    return Ownership(owners=owners) if owners or before is not None else None


def _governance(
    before: Governance | None, changes: Mapping[AnnotationKey, str | None]
) -> Governance | None:
    labels = _changed_labels(before or Governance(), changes)
    if not labels:
        return before
    after = msgspec.structs.replace(before or Governance(), **labels)
    return None if before is None and after == Governance() else after


def _properties(
    before: dict[str, str] | None, changes: Mapping[AnnotationKey, str | None]
) -> dict[str, str] | None:
    property_changes = {key.name: value for key, value in changes.items() if key.slot == "property"}
    if not property_changes:
        return before
    after = _update_mapping(before or {}, property_changes)
    return after if after or before is not None else None


def _schedule(
    before: Schedule | None, changes: Mapping[AnnotationKey, str | None]
) -> Schedule | None:
    """The schedule, which is written as JSON in its annotation."""
    key = AnnotationKey("", "schedule")
    if key not in changes:
        return before
    value = changes[key]
    return None if value is None else from_json(value, Schedule)


def _changed_labels(
    holder: Governance | Field | NestedField, changes: Mapping[AnnotationKey, str | None]
) -> dict[str, tuple[str, ...]]:
    """The tags, terms and compliance labels of a dataset or a field that change."""
    labels: dict[str, tuple[str, ...]] = {}
    for slot, name in LABELS.items():
        label_changes = {key.name: value for key, value in changes.items() if key.slot == slot}
        if label_changes:
            labels[name] = _update_members(getattr(holder, name), label_changes)
    return labels


def _update_members(before: Sequence[Any], changes: Mapping[Any, str | None]) -> tuple[Any, ...]:
    remaining = [each for each in before if changes.get(each, "") is not None]
    new = (each for each, value in changes.items() if value is not None and each not in remaining)
    return (*remaining, *new)


def _update_mapping(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}


def annotate_schema(schema: Schema, changes: Mapping[AnnotationKey, str | None]) -> Schema:
    """Set values of fields of a schema by key; keys of missing fields are ignored."""
    by_column: dict[str, dict[str, dict[AnnotationKey, str | None]]] = {}
    for key, value in changes.items():
        if key.path:
            paths = by_column.setdefault(column_of(key.path), {})
            paths.setdefault(key.path, {})[key] = value
    return Schema(
        fields=tuple(
            _annotate_field(field, by_column[name])
            if (name := quoted_name(field.name)) in by_column
            else field
            for field in schema.fields
        )
    )


def _annotate_field(
    field: Field, changes: Mapping[str, Mapping[AnnotationKey, str | None]]
) -> Field:
    column = quoted_name(field.name)
    values = _changed_values(field, changes.get(column, {}))
    if changes.keys() - {column}:
        nested_fields = {nested.path: nested for nested in field.nested}
        for part in nested_parts(field):
            if (own := changes.get(part.path)) is not None:
                nested = nested_fields.get(part.path) or NestedField(path=part.path)
                nested_fields[part.path] = msgspec.structs.replace(
                    nested, **_changed_values(nested, own)
                )
        values["nested"] = tuple(
            nested for nested in nested_fields.values() if nested != NestedField(path=nested.path)
        )
    return msgspec.structs.replace(field, **values)


def _changed_values(
    field: Field | NestedField, changes: Mapping[AnnotationKey, str | None]
) -> dict[str, Any]:
    values: dict[str, Any] = dict(_changed_labels(field, changes))
    for key, value in changes.items():
        if key.slot == "description":
            values["description"] = value
    properties = {key.name: value for key, value in changes.items() if key.slot == "property"}
    if properties:
        values["properties"] = _update_mapping(field.properties, properties)
    return values
