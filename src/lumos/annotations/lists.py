"""Lists the annotations of datasets and their reporters."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from lumos.annotations.attribution import attribute
from lumos.annotations.reports import AnnotationListReport, LabelCount, ListedAnnotation
from lumos.annotations.rules import annotations_of, keys_of_missing_fields, resolve
from lumos.model.annotation import AnnotationKey, AnnotationsByReporter, Slot
from lumos.names import find_datasets, find_fields, unknown_field_error
from lumos.store import DatasetFilter, Store
from lumos.store.entries import StoredEntry, is_scanned

_BATCH_SIZE: Final = 200


def list_annotations(
    store: Store, dataset: str | None, *, slots: Collection[Slot], fields: Sequence[str] = ()
) -> AnnotationListReport:
    """List the annotations in `slots`, optionally only of one name or pattern, or of `fields`."""
    listed: list[ListedAnnotation] = []
    count, schemas_lacking_fields = 0, []
    for stored, annotations in annotated_entries(store, dataset):
        count += 1
        paths = set(find_fields(stored.dataset.schema, fields)) if fields else set()
        if fields and not paths and stored.dataset.schema is not None:
            schemas_lacking_fields.append(stored.dataset.schema)
        listed += [
            each
            for each in _annotations(stored, annotations, slots)
            if not fields or each.field in paths or each.field in fields
        ]
    if fields and count == len(schemas_lacking_fields) and not listed:
        raise unknown_field_error(fields, f"'{dataset}'", schemas_lacking_fields)
    return AnnotationListReport(
        datasets=count, labels=tuple(_count_labels(listed)), annotations=tuple(listed)
    )


def stored_entries(store: Store, dataset: str | None) -> Iterator[StoredEntry]:
    """The live datasets that match a name or a pattern, or all of them."""
    for batch in _batches(store, dataset):
        entries = store.entries.get_many(batch)
        yield from (entries[urn] for urn in batch if urn in entries)


def annotated_entries(
    store: Store, dataset: str | None
) -> Iterator[tuple[StoredEntry, AnnotationsByReporter]]:
    """The live datasets that match a name or a pattern, or all, with their annotations."""
    for batch in _batches(store, dataset):
        entries, annotations = store.entries.get_many(batch), store.annotations.of(batch)
        yield from ((entries[urn], annotations.get(urn, {})) for urn in batch if urn in entries)


def _batches(store: Store, dataset: str | None) -> Iterator[list[str]]:
    known = store.list(DatasetFilter()) if dataset is None else find_datasets(store, dataset)
    remaining = iter(list(known))
    while batch := [each.urn for each in islice(remaining, _BATCH_SIZE)]:
        yield batch


def _annotations(
    stored: StoredEntry, annotations_by_reporter: AnnotationsByReporter, slots: Collection[Slot]
) -> Iterator[ListedAnnotation]:
    values = annotations_of(stored.dataset)
    attributed = attribute(annotations_by_reporter, values, values, is_scanned=is_scanned(stored))
    for key, value in values.items():
        if key.slot in slots:
            yield _to_listed(stored, attributed, key, value, is_field_missing=False)
    for key in keys_of_missing_fields(stored.dataset.schema, annotations_by_reporter):
        resolved = resolve(annotations_by_reporter, key)
        if key.slot in slots and resolved is not None and resolved.annotation.value is not None:
            yield _to_listed(
                stored,
                annotations_by_reporter,
                key,
                resolved.annotation.value,
                is_field_missing=True,
            )


def _to_listed(
    stored: StoredEntry,
    annotations: AnnotationsByReporter,
    key: AnnotationKey,
    value: str,
    *,
    is_field_missing: bool,
) -> ListedAnnotation:
    resolved = resolve(annotations, key)
    return ListedAnnotation(
        urn=stored.known.urn,
        dataset=stored.known.name,
        field=key.path,
        slot=key.slot,
        name=key.name,
        value=value or None,
        by=None if resolved is None else resolved.reporter,
        author=None if resolved is None else resolved.annotation.author,
        at=None if resolved is None else resolved.annotation.at,
        state="field gone" if is_field_missing else "said",
    )


def _count_labels(listed: Sequence[ListedAnnotation]) -> Iterator[LabelCount]:
    datasets = {(each.name or each.slot, each.urn) for each in listed}
    fields = Counter(each.name or each.slot for each in listed if each.field)
    counts = Counter(name for name, _ in datasets)
    for name in sorted(counts):
        yield LabelCount(name=name, datasets=counts[name], fields=fields[name])
