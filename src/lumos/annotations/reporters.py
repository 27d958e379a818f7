"""Annotations of tools such as dbt projects and SQL files, replaced as a whole by each report."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from lumos.annotations.items import ItemStore, OwnerDirectory, label_of
from lumos.annotations.reports import AnnotationReport
from lumos.annotations.rules import owner_from_key, owner_key
from lumos.annotations.writer import RETRACT, AnnotationChanges, AnnotationWriter
from lumos.model.annotation import AnnotationKey, AnnotationMap
from lumos.model.dataset import Dataset, Owner
from lumos.names import find_fields

# The annotations of a reporter, by URN; field paths are written as in the report.
ReportedAnnotations: TypeAlias = Mapping[str, Mapping[AnnotationKey, str]]


class DatasetDescription(Protocol):
    """The description of a dataset and its columns by a tool."""

    @property
    def description(self) -> str | None: ...
    @property
    def owners(self) -> tuple[Owner, ...]: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def columns(self) -> Mapping[str, str]: ...
    @property
    def column_tags(self) -> Mapping[str, tuple[str, ...]]: ...


def apply_descriptions(
    writer: AnnotationWriter,
    reporter: str,
    descriptions: Iterable[tuple[str, DatasetDescription]],
    *,
    only: Collection[str] | None = None,
    dry_run: bool = False,
) -> AnnotationReport:
    """Replace all annotations of a reporter by its descriptions of datasets, by URN.

    Annotations of users take precedence. Earlier annotations of the reporter that are not in
    `descriptions` are retracted. Datasets that the store does not have are skipped. Several
    descriptions of a dataset are combined. With `only`, annotations of other datasets stay.
    """
    report: dict[str, dict[AnnotationKey, str]] = {}
    described = list(descriptions)
    owners = OwnerDirectory(writer).resolve(owner for _, each in described for owner in each.owners)
    for urn, each in described:
        report.setdefault(urn, {}).update(_values(each, owners))
    return apply_report(writer, reporter, report, only=only, dry_run=dry_run, action="describe")


def apply_report(
    writer: AnnotationWriter,
    reporter: str,
    report: ReportedAnnotations,
    *,
    only: Collection[str] | None = None,
    dry_run: bool,
    action: str,
) -> AnnotationReport:
    """Replace all annotations of a reporter, or those of the datasets `only`, by a report."""
    store = writer.store
    by_urn = {store.resolve(urn): values for urn, values in report.items()}

    def edit(dataset: Dataset, own: AnnotationMap) -> AnnotationChanges:
        wanted = _with_field_paths(dataset, by_urn.get(dataset.urn, {}))
        return {**dict.fromkeys(own.keys() - wanted.keys(), RETRACT), **wanted}

    annotated = store.annotations.urns(reporter)
    written = writer.write(
        [*by_urn, *(urn for urn in annotated if only is None or urn in only)],
        edit,
        action=action,
        target=reporter,
        reporter=reporter,
        dry_run=dry_run,
    )
    keys = [key for values in report.values() for key in values]
    if not keys:
        return written
    items = ItemStore(writer)
    new = [
        *items.new_owners(owner_from_key(key.name) for key in keys if key.slot == "owner"),
        *items.new_terms(key.name for key in keys if key.slot == "term"),
    ]
    labels = items.put(new, action=action) if new and not dry_run else map(label_of, new)
    return msgspec.structs.replace(written, items=tuple(labels))


def _with_field_paths(
    dataset: Dataset, values: Mapping[AnnotationKey, str]
) -> dict[AnnotationKey, str]:
    """Convert field paths to those of the dataset; paths of unknown fields do not change."""
    values_by_path: dict[AnnotationKey, str] = {}
    paths: dict[str, str] = {"": ""}
    for key, value in values.items():
        if key.path not in paths:
            paths[key.path] = next(iter(find_fields(dataset.schema, [key.path])), key.path)
        values_by_path[key._replace(path=paths[key.path])] = value
    return values_by_path


def _values(each: DatasetDescription, owners: Mapping[Owner, Owner]) -> dict[AnnotationKey, str]:
    values: dict[AnnotationKey, str] = {}
    if each.description:
        values[AnnotationKey("", "description")] = each.description
    values |= {AnnotationKey("", "owner", owner_key(owners[owner])): "" for owner in each.owners}
    values |= {AnnotationKey("", "tag", tag): "" for tag in each.tags}
    values |= {AnnotationKey("", "property", name): text for name, text in each.properties.items()}
    for column, text in each.columns.items():
        if text:
            values[AnnotationKey(column, "description")] = text
    for column, tags in each.column_tags.items():
        values |= {AnnotationKey(column, "tag", tag): "" for tag in tags}
    return values
