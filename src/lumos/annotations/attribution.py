"""Attributes annotations to reporters after edits, scans and imports."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from lumos.annotations.rules import (
    annotate,
    annotate_schema,
    annotations_of,
    claimed_keys,
    field_annotations,
    resolve_value,
    source_annotations,
    source_annotations_in,
)
from lumos.model.annotation import (
    DATA_SOURCE,
    IMPORT,
    Annotation,
    AnnotationKey,
    AnnotationMap,
    AnnotationsByReporter,
)
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.discovery import SourceMetadata
from lumos.model.schema import Schema
from lumos.model.type_path import field_paths


def attribute(
    annotations: AnnotationsByReporter,
    values: Mapping[AnnotationKey, str],
    keys: Iterable[AnnotationKey],
    *,
    is_scanned: bool,
) -> dict[str, AnnotationMap]:
    """Assign a reporter to values that have none.

    `values` are all current values of the dataset; only those of `keys` are attributed. On
    fields of a scanned dataset, values that no other reporter annotates come from the data source.
    Other values that the source did not report were imported.
    """
    after = {
        reporter: dict(annotations_by_key) for reporter, annotations_by_key in annotations.items()
    }
    claimed, reported = claimed_keys(annotations), annotations.get(DATA_SOURCE, {})
    for key in keys:
        if key not in values or key in claimed:
            continue
        from_source = is_scanned
        if not key.path:
            from_source = key in reported and reported[key].value == values[key]
        annotations_by_key = after.setdefault(DATA_SOURCE if from_source else IMPORT, {})
        annotations_by_key[key] = Annotation(value=values[key])
    return dict(after)


def refresh_source_annotations(
    annotations: AnnotationsByReporter,
    scanned_schema: Schema,
    metadata: SourceMetadata | None,
    platform: str,
) -> dict[str, AnnotationMap]:
    """Return the annotations after a scan, with the current report of the data source.

    Annotations on fields are only stored if other reporters annotate the same field: the schema
    contains the rest.
    """
    annotations = match_field_case(annotations, scanned_schema)
    if metadata is None:
        # Files have no metadata about the dataset as a whole, so earlier values stay.
        earlier = annotations.get(DATA_SOURCE, {})
        reported = {key: each for key, each in earlier.items() if not key.path}
    else:
        reported = source_annotations(metadata, platform)
    claimed = [key for key in claimed_keys(annotations) if key.path]
    if claimed:
        values = field_annotations(scanned_schema)
        reported |= {key: Annotation(value=values[key]) for key in claimed if key in values}
    others = {
        reporter: by_key for reporter, by_key in annotations.items() if reporter != DATA_SOURCE
    }
    return {**others, DATA_SOURCE: reported} if reported else others


def drop_uncontested_source_annotations(
    annotations: AnnotationsByReporter, *, fields_only: bool
) -> dict[str, AnnotationMap]:
    """Drop the data source's annotations of keys that no other reporter annotates."""
    claimed = claimed_keys(annotations)
    source = {
        key: each
        for key, each in annotations.get(DATA_SOURCE, {}).items()
        if key in claimed or (fields_only and not key.path)
    }
    result = {**annotations, DATA_SOURCE: source}
    return {reporter: by_key for reporter, by_key in result.items() if by_key}


def match_field_case(
    annotations: AnnotationsByReporter, scanned_schema: Schema
) -> dict[str, AnnotationMap]:
    """Move annotations of missing fields to fields whose names differ only in case."""
    annotated = {key.path for by_key in annotations.values() for key in by_key if key.path}
    present = field_paths(scanned_schema) if annotated else []
    missing = annotated - set(present)
    if not missing:
        return dict(annotations)
    by_folded: dict[str, list[str]] = {}
    for path in present:
        by_folded.setdefault(path.casefold(), []).append(path)
    candidates = {path: by_folded.get(path.casefold(), []) for path in missing}
    new_paths = {path: paths[0] for path, paths in candidates.items() if len(paths) == 1}
    return {
        reporter: {
            **{
                key._replace(path=new_paths.get(key.path, key.path)): each
                for key, each in by_key.items()
            },
            **{key: each for key, each in by_key.items() if key.path not in new_paths},
        }
        for reporter, by_key in annotations.items()
    }


def adopt_imported(
    annotations: AnnotationsByReporter, imported_schema: Schema, scanned_schema: Schema
) -> dict[str, AnnotationMap]:
    """Add the annotations of an imported schema that the scanned schema does not have."""
    claimed = {key for by_key in annotations.values() for key in by_key}
    imported = field_annotations(imported_schema)
    missing = imported.keys() - field_annotations(scanned_schema).keys() - claimed
    by_key = {
        **annotations.get(IMPORT, {}),
        **{key: Annotation(value=imported[key]) for key in missing},
    }
    return {**annotations, IMPORT: by_key} if by_key else dict(annotations)


def annotate_scanned_schema(schema: Schema, annotations: AnnotationsByReporter) -> Schema:
    """Apply the effective annotations to a scanned schema."""
    keys = {key for by_key in annotations.values() for key in by_key if key.path}
    if not keys:
        return schema
    changes = _changes(annotations, keys, field_annotations(schema))
    return annotate_schema(schema, changes) if changes else schema


def annotate_scanned_dataset(dataset: Dataset, annotations: AnnotationsByReporter) -> Dataset:
    """Apply the effective annotations of the dataset itself to a scanned dataset."""
    keys = {
        key
        for key in claimed_keys(annotations)
        if not key.path and key.slot in ("description", "owner", "property")
    }
    if not keys:
        return dataset
    changes = _changes(annotations, keys, annotations_of(dataset))
    return annotate(dataset, changes) if changes else dataset


def _changes(
    annotations: AnnotationsByReporter,
    keys: Iterable[AnnotationKey],
    values: Mapping[AnnotationKey, str],
) -> dict[AnnotationKey, str | None]:
    resolved = {key: resolve_value(annotations, key) for key in sorted(keys)}
    return {key: value for key, value in resolved.items() if values.get(key) != value}


def annotations_after_import(
    entry: CatalogEntry,
    before: Dataset | None,
    annotations: AnnotationsByReporter,
    *,
    is_scanned: bool,
    at: datetime,
) -> dict[str, AnnotationMap]:
    """The annotations of a dataset after an import.

    `before` is the dataset as it was before the import, or None if it is new. Values that the
    import changed get its time, so that they take precedence: users edited them in another system.
    """
    after = dict(annotations)
    if before is not None and (
        changed := _imported_changes(
            entry, before, claimed_keys(annotations), is_scanned=is_scanned
        )
    ):
        new = {key: Annotation(value=value, at=at) for key, value in changed.items()}
        after[IMPORT] = {**annotations.get(IMPORT, {}), **new}
    on_fields = {key: each for key, each in annotations.get(DATA_SOURCE, {}).items() if key.path}
    after[DATA_SOURCE] = {**on_fields, **source_annotations_in(entry, after)}
    return {reporter: by_key for reporter, by_key in after.items() if by_key}


def _imported_changes(
    entry: CatalogEntry, before: Dataset, claimed: Collection[AnnotationKey], *, is_scanned: bool
) -> dict[AnnotationKey, str | None]:
    """The imported values that a reporter or the next scan would otherwise override."""
    if not claimed and (not is_scanned or entry.schema == before.schema):
        return {}
    present = set(field_paths(entry.schema)) if entry.schema is not None else set()
    old, new = annotations_of(before), annotations_of(entry)
    return {
        key: new.get(key)
        for key in old.keys() | new.keys()
        if old.get(key) != new.get(key)
        and (key in claimed or (is_scanned and key.path))
        and (not key.path or key.path in present)
    }
