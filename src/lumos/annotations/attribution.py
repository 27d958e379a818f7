"""Which reporter each annotation of a dataset belongs to, after edits, scans and imports."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lumos.annotations.rules import (
    annotate,
    annotate_schema,
    annotations_of,
    field_annotations,
    is_from_source,
    resolve_value,
    source_annotations,
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
from lumos.store.annotations import annotation_row, annotations_in, is_annotation_row
from lumos.store.entries import StoredEntry


def attribute(
    annotations: AnnotationsByReporter,
    dataset: Dataset,
    values: Mapping[AnnotationKey, str],
    keys: Iterable[AnnotationKey],
    *,
    is_scanned: bool,
) -> dict[str, AnnotationMap]:
    """The annotations, where values that no reporter claims are attributed to one.

    `values` are all that the dataset has now; only those of `keys` are attributed. Unclaimed values
    on fields of a scanned dataset come from the data source. Other values that the source did not
    report were imported.
    """
    after = {reporter: dict(own) for reporter, own in annotations.items()}
    for key in keys:
        if key in values and not any(key in own for own in annotations.values()):
            from_source = is_scanned if key.path else is_from_source(dataset, key)
            reporter = DATA_SOURCE if from_source else IMPORT
            after.setdefault(reporter, {})[key] = Annotation(value=values[key])
    return dict(after)


def refresh_source_annotations(
    annotations: AnnotationsByReporter,
    found: Schema,
    metadata: SourceMetadata | None,
    platform: str,
) -> dict[str, AnnotationMap]:
    """The annotations after a scan, with what the data source reports now."""
    annotations = match_field_case(annotations, found)
    values = field_annotations(found)
    if metadata is not None:
        values |= source_annotations(metadata, platform)
    keys = {key for own in annotations.values() for key in own}
    reported = {key: Annotation(value=values[key]) for key in keys if key in values}
    if metadata is None:
        # Files have no metadata about the dataset as a whole, so earlier values stay.
        earlier = annotations.get(DATA_SOURCE, {})
        reported = {key: each for key, each in earlier.items() if not key.path} | reported
    others = {reporter: own for reporter, own in annotations.items() if reporter != DATA_SOURCE}
    return {**others, DATA_SOURCE: reported} if reported else others


def match_field_case(annotations: AnnotationsByReporter, found: Schema) -> dict[str, AnnotationMap]:
    """The annotations, moved to fields whose names differ from the annotated ones in case only."""
    present = field_paths(found)
    lost = {key.path for own in annotations.values() for key in own if key.path} - set(present)
    if not lost:
        return dict(annotations)
    by_folded: dict[str, list[str]] = {}
    for path in present:
        by_folded.setdefault(path.casefold(), []).append(path)
    candidates = {path: by_folded.get(path.casefold(), []) for path in lost}
    moved = {path: paths[0] for path, paths in candidates.items() if len(paths) == 1}
    return {
        reporter: {
            **{key._replace(path=moved.get(key.path, key.path)): each for key, each in own.items()},
            **{key: each for key, each in own.items() if key.path not in moved},
        }
        for reporter, own in annotations.items()
    }


def adopt_imported(
    annotations: AnnotationsByReporter, recorded: Schema, found: Schema
) -> dict[str, AnnotationMap]:
    """The annotations, with the values of an imported schema that the scanned one does not have."""
    claimed = {key for own in annotations.values() for key in own}
    imported = field_annotations(recorded)
    missing = imported.keys() - field_annotations(found).keys() - claimed
    own = {
        **annotations.get(IMPORT, {}),
        **{key: Annotation(value=imported[key]) for key in missing},
    }
    return {**annotations, IMPORT: own} if own else dict(annotations)


def annotate_scanned_schema(schema: Schema, annotations: AnnotationsByReporter) -> Schema:
    """A schema as it was scanned, with the annotations that count."""
    keys = {key for own in annotations.values() for key in own if key.path}
    if not keys:
        return schema
    changes = _changes(annotations, keys, field_annotations(schema))
    return annotate_schema(schema, changes) if changes else schema


def annotate_scanned_dataset(dataset: Dataset, annotations: AnnotationsByReporter) -> Dataset:
    """A dataset as it was scanned, with the annotations of the dataset itself that count."""
    keys = {
        key
        for own in annotations.values()
        for key in own
        if not key.path and key.slot in ("description", "owner", "property")
    }
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
    entry: CatalogEntry, before: StoredEntry, *, is_scanned: bool, at: datetime
) -> dict[str, bytes]:
    """The stored annotations of a dataset after an import.

    Values that an import changed were written by people elsewhere, and are the newest.
    """
    rows = {name: body for name, body in before.extras.items() if is_annotation_row(name)}
    if not rows and (not is_scanned or entry.schema == before.dataset.schema):
        return {}
    annotations = annotations_in(before.extras)
    claimed = {key for own in annotations.values() for key in own}
    present = set(field_paths(entry.schema)) if entry.schema is not None else set()
    old, new = annotations_of(before.dataset), annotations_of(entry)
    changed = {
        key: Annotation(value=new.get(key), at=at)
        for key in old.keys() | new.keys()
        if old.get(key) != new.get(key)
        and (key in claimed or (is_scanned and key.path))
        and (not key.path or key.path in present)
    }
    if changed:
        name, body = annotation_row(IMPORT, {**annotations.get(IMPORT, {}), **changed})
        rows[name] = body
    return rows
