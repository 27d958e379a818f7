"""The service behind `lumos tag`, `compliance`, `doc`, `property`, `term` and `enrich`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Final, TypeAlias, get_args

import msgspec

from lumos.annotations.items import ItemStore, label_of, replace_given
from lumos.annotations.lists import annotated_entries, list_annotations
from lumos.annotations.owners import Owners
from lumos.annotations.reporters import DatasetDescription, apply_descriptions
from lumos.annotations.reports import (
    AnnotationListReport,
    AnnotationReport,
    MissingDocsReport,
    TermReport,
)
from lumos.annotations.rules import DOC_SLOTS, check_editable_properties, keys_of_missing_fields
from lumos.annotations.writer import RETRACT, AnnotationChanges, AnnotationWriter, Retraction
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName, did_you_mean
from lumos.model.annotation import AnnotationKey, AnnotationMap, Slot
from lumos.model.catalog import GlossaryTerm
from lumos.model.cron import parse_schedule
from lumos.model.dataset import Dataset
from lumos.model.json_codec import to_json
from lumos.model.schema import Schema
from lumos.names import (
    find_datasets,
    find_fields,
    is_dataset,
    match_paths,
    split_field,
    unknown_field_error,
)
from lumos.store import Store

# New values by slot and name, for a dataset or for each of several fields.
AnnotationValues: TypeAlias = Mapping[tuple[Slot, str], str | Retraction | None]
_MAX_TEXT_LENGTH: Final = 100_000


class AnnotationEditor:
    """Edits and lists annotations in some slots on behalf of a user."""

    def __init__(self, writer: AnnotationWriter, *slots: Slot, noun: str) -> None:
        self._writer = writer
        self.slots = slots
        self._noun = noun

    def list(
        self, dataset: str | None = None, *, fields: Sequence[str] = ()
    ) -> AnnotationListReport:
        """List the annotations of datasets, or only those of `fields`."""
        return list_annotations(self._writer.store, dataset, slots=self.slots, fields=fields)

    def _edit(
        self,
        verb: str,
        dataset: str,
        values: AnnotationValues,
        *,
        fields: Sequence[str],
        dry_run: bool,
        check: Callable[[Dataset], None] = lambda _dataset: None,
    ) -> AnnotationReport:
        """Write values for datasets, or for `fields` of them.

        Without `fields`, `dataset` may name a field: `orders.amount` is `amount` of `orders`.
        """
        if not fields:
            dataset, fields = split_field(self._writer.store, dataset)
        known = find_datasets(self._writer.store, dataset)
        is_removal = not any(isinstance(value, str) for value in values.values())
        store = self._writer.store
        missing = _annotated_missing_fields(store, dataset, fields) if fields and is_removal else {}
        searched: list[Schema] = []
        has_field = False

        def edit(each: Dataset, _own: AnnotationMap) -> AnnotationChanges:
            nonlocal has_field
            check(each)
            paths = (
                [*find_fields(each.schema, fields), *missing.get(each.urn, ())] if fields else [""]
            )
            has_field = has_field or bool(paths)
            if not has_field and each.schema is not None:
                searched.append(each.schema)
            return {
                AnnotationKey(path, slot, name): value
                for path in paths
                for (slot, name), value in values.items()
            }

        report = self._writer.write(
            [each.urn for each in known],
            edit,
            action=f"{self._noun} {verb}",
            target=dataset,
            dry_run=dry_run,
        )
        if fields and not has_field:
            owner = known[0].urn if len(known) == 1 else f"'{dataset}'"
            raise unknown_field_error(fields, owner, searched)
        if is_removal and not report.changed and not report.overruled:
            names = ", ".join(f"'{name}'" for _slot, name in values if name)
            command = f"lumos {self._noun.removesuffix(' label')} list {quote(dataset)}"
            nothing = f"Nothing was removed: '{dataset}' has no {self._noun} {names}".rstrip()
            remark = f"{nothing}. To see what it has: {command}"
            report = msgspec.structs.replace(report, remarks=(*report.remarks, remark))
        return report


def _annotated_missing_fields(
    store: Store, dataset: str, fields: Sequence[str]
) -> dict[str, list[str]]:
    """Return the named fields that no longer exist but still have annotations, by URN."""
    annotated = {}
    for stored, annotations in annotated_entries(store, dataset):
        paths = [key.path for key in keys_of_missing_fields(stored.dataset.schema, annotations)]
        if paths:
            annotated[stored.known.urn] = match_paths(fields, list(dict.fromkeys(paths)))
    return annotated


class LabelEditor(AnnotationEditor):
    """Tags or compliance labels."""

    def __init__(self, writer: AnnotationWriter, slot: Slot, *, noun: str) -> None:
        super().__init__(writer, slot, noun=noun)
        self._slot: Slot = slot

    def set(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Add labels to datasets, or to `fields` of them."""
        values: AnnotationValues = {
            (self._slot, name): "" for name in _distinct_names(names, self._noun)
        }
        return self._edit("add", dataset, values, fields=fields, dry_run=dry_run)

    def remove(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        mine: bool = False,
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Remove labels of any author; with `mine`, only retract labels that users added."""
        new_value = RETRACT if mine else None
        values: AnnotationValues = {
            (self._slot, name): new_value for name in _distinct_names(names, self._noun)
        }
        return self._edit("remove", dataset, values, fields=fields, dry_run=dry_run)


class DocEditor(AnnotationEditor):
    """Descriptions, business context and domains."""

    def __init__(self, writer: AnnotationWriter) -> None:
        super().__init__(writer, *DOC_SLOTS, noun="doc")

    def set(
        self,
        dataset: str,
        description: str | None = None,
        *,
        context: str | None = None,
        domain: str | None = None,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Write documentation; texts that are not given do not change."""
        given = {"description": description, "business_context": context, "domain": domain}
        texts = {slot: text.strip() for slot, text in given.items() if text is not None}
        if not texts:
            raise MisuseError(
                "Nothing to write. Give a description, --context or --domain: "
                "lumos doc set DATASET TEXT"
            )
        for slot, text in texts.items():
            if not text:
                raise MisuseError(
                    f"The {slot.replace('_', ' ')} is empty. "
                    "To remove one: lumos doc remove DATASET"
                )
            if len(text) > _MAX_TEXT_LENGTH:
                raise MisuseError(f"The {slot} has more than {_MAX_TEXT_LENGTH:,} characters.")
        if fields and texts.keys() - {"description"}:
            raise MisuseError(
                "Fields only have a description; --context and --domain are for datasets."
            )
        values = {(slot, ""): texts[slot] for slot in DOC_SLOTS if slot in texts}
        return self._edit("set", dataset, values, fields=fields, dry_run=dry_run)

    def remove(
        self,
        dataset: str,
        *,
        description: bool = False,
        context: bool = False,
        domain: bool = False,
        fields: Sequence[str] = (),
        mine: bool = False,
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Remove the selected kinds of documentation, or all of them if none is selected."""
        named = {"description": description, "business_context": context, "domain": domain}
        if fields:
            named = {"description": True}
        slots = [slot for slot in DOC_SLOTS if named.get(slot)] or list(DOC_SLOTS)
        values: AnnotationValues = {(slot, ""): RETRACT if mine else None for slot in slots}
        return self._edit("remove", dataset, values, fields=fields, dry_run=dry_run)


class PropertyEditor(AnnotationEditor):
    """Free-form properties."""

    def __init__(self, writer: AnnotationWriter) -> None:
        super().__init__(writer, "property", noun="property")

    def set(
        self,
        dataset: str,
        properties: Mapping[str, str],
        *,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Set properties of datasets, or of `fields` of them."""
        names = _distinct_names(tuple(properties), self._noun)
        return self._write(
            "set", dataset, {name: properties[name] for name in names}, fields, dry_run
        )

    def remove(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        mine: bool = False,
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Remove properties."""
        values = dict.fromkeys(_distinct_names(names, self._noun), RETRACT if mine else None)
        return self._write("remove", dataset, values, fields, dry_run)

    def _write(
        self,
        verb: str,
        dataset: str,
        properties: Mapping[str, str | Retraction | None],
        fields: Sequence[str],
        dry_run: bool,
    ) -> AnnotationReport:
        def check(each: Dataset) -> None:
            if not fields:
                check_editable_properties(each, properties)

        values: AnnotationValues = {("property", name): text for name, text in properties.items()}
        return self._edit(verb, dataset, values, fields=fields, dry_run=dry_run, check=check)


class ScheduleEditor(AnnotationEditor):
    """Schedules: when new data of a dataset is expected."""

    def __init__(self, writer: AnnotationWriter) -> None:
        super().__init__(writer, "schedule", noun="schedule")

    def set(
        self,
        dataset: str,
        cron: str,
        *,
        timezone: str = "UTC",
        lag: str | timedelta = timedelta(),
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Set when the runs of datasets start, and how long after that their data is available."""
        schedule = parse_schedule(cron, timezone=timezone, lag=lag)
        values: AnnotationValues = {("schedule", ""): to_json(schedule).decode()}
        return self._edit("set", dataset, values, fields=(), dry_run=dry_run)

    def remove(
        self, dataset: str, *, mine: bool = False, dry_run: bool = False
    ) -> AnnotationReport:
        """Remove the schedule of datasets; with `mine`, only retract schedules that users set."""
        values: AnnotationValues = {("schedule", ""): RETRACT if mine else None}
        return self._edit("remove", dataset, values, fields=(), dry_run=dry_run)


class TermEditor(LabelEditor):
    """Glossary terms: their definitions, and the datasets and fields that have them."""

    def __init__(self, writer: AnnotationWriter) -> None:
        super().__init__(writer, "term", noun="term")
        self._items = ItemStore(writer)

    def set(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Add terms to datasets or fields; new terms are added to the glossary."""
        with self._writer.batch_publishing():
            report = super().set(dataset, *names, fields=fields, dry_run=dry_run)
            known = self._items.all(GlossaryTerm)
            new = self._items.new_terms(_distinct_names(names, self._noun))
            if not new:
                return report
            labels = map(label_of, new) if dry_run else self._items.put(new, action="term define")
            hints = (
                f"'{term.name}' is a new term without a definition."
                f"{did_you_mean(term.name, known)} Write one with: "
                f"lumos term set {quote(term.name)} --definition TEXT"
                for term in new
            )
            return msgspec.structs.replace(report, items=tuple(labels), remarks=tuple(hints))

    def define(
        self,
        name: str,
        *,
        definition: str | None = None,
        display_name: str | None = None,
        parent: str | None = None,
        domain: str | None = None,
        related: Sequence[str] | None = None,
        owners: Sequence[str] | None = None,
    ) -> TermReport:
        """Define a term; values that are not given do not change."""
        (name,) = _distinct_names((name,), self._noun)
        known = self._items.all(GlossaryTerm)
        for other in (*filter(None, (parent,)), *(related or ())):
            if other not in known:
                raise unknown_term_error(other, known)
        term = replace_given(
            known.get(name) or GlossaryTerm(name=name),
            definition=definition,
            display_name=display_name,
            parent=parent,
            domain=domain,
            related=None if related is None else tuple(related),
            owners=None if owners is None else tuple(owners),
        )
        _check_parents(term, known)
        self._items.put([term], action="term define")
        return TermReport(term=term, created=name not in known, changed=known.get(name) != term)

    def undefine(self, name: str) -> TermReport:
        """Remove a term from the glossary; fails while it is used."""
        known = self._items.all(GlossaryTerm)
        if name not in known:
            raise unknown_term_error(name, known)
        if children := [each.name for each in known.values() if each.parent == name]:
            child = children[0]
            raise MisuseError(
                f"The term '{name}' is still the parent of {child}. Choose another parent with: "
                f"lumos term set {quote(child)} --parent TERM"
            )
        if used := [each.dataset for each in self.list().annotations if each.name == name]:
            raise MisuseError(
                f"The term '{name}' is still used by {used[0]}. Remove it with: "
                f"lumos term remove {quote(used[0])} {quote(name)}"
            )
        with self._writer.store.transaction() as transaction:
            self._items.erase(transaction, known[name], action="term undefine")
        self._writer.publish()
        return TermReport(term=known[name], created=False, changed=True)

    def list(
        self, dataset: str | None = None, *, fields: Sequence[str] = ()
    ) -> AnnotationListReport:
        """The glossary, and the terms of datasets and fields."""
        report = super().list(dataset, fields=fields)
        glossary = tuple(self._items.all(GlossaryTerm).values())
        return msgspec.structs.replace(report, glossary=glossary)


def unknown_term_error(name: str, known: Iterable[str]) -> UnknownName:
    """The error for a term that the glossary does not have."""
    return UnknownName("term", name, known, next=f"Add it with: lumos term set {quote(name)}")


def _check_parents(term: GlossaryTerm, known: Mapping[str, GlossaryTerm]) -> None:
    ancestor, seen = term.parent, [term.name]
    while ancestor is not None:
        if ancestor in seen:
            raise MisuseError(f"A term cannot be its own ancestor: {' < '.join((*seen, ancestor))}")
        seen.append(ancestor)
        ancestor = known[ancestor].parent if ancestor in known else None


def _distinct_names(names: Sequence[str], noun: str) -> list[str]:
    """The distinct names, stripped; fails if there are none or one is empty."""
    stripped = [name.strip() for name in names]
    if not stripped or not all(stripped):
        raise MisuseError(f"Give at least one {noun}; it must not be empty.")
    return list(dict.fromkeys(stripped))


class Annotations:
    """All annotations of one store: owners, tags, documentation, properties and terms."""

    def __init__(self, settings: Settings, writer: AnnotationWriter) -> None:
        self._settings = settings
        self._writer = writer

    @cached_property
    def owners(self) -> Owners:
        """Users and groups, and the datasets that they own."""
        return Owners(self._settings, self._writer)

    @cached_property
    def tags(self) -> LabelEditor:
        """Free-form tags."""
        return LabelEditor(self._writer, "tag", noun="tag")

    @cached_property
    def compliance(self) -> LabelEditor:
        """Labels of regulations, such as GDPR."""
        return LabelEditor(self._writer, "compliance", noun="compliance label")

    @cached_property
    def docs(self) -> DocEditor:
        """Descriptions, business context and domains."""
        return DocEditor(self._writer)

    @cached_property
    def properties(self) -> PropertyEditor:
        """Free-form properties."""
        return PropertyEditor(self._writer)

    @cached_property
    def terms(self) -> TermEditor:
        """The glossary, and the terms of datasets and fields."""
        return TermEditor(self._writer)

    @cached_property
    def schedules(self) -> ScheduleEditor:
        """When new data of datasets is expected."""
        return ScheduleEditor(self._writer)

    def is_dataset(self, text: str) -> bool:
        """Whether a URN, a name or a pattern matches a live dataset."""
        return is_dataset(self._writer.store, text)

    def enrich(self, file: str | Path, *, dry_run: bool = False) -> AnnotationReport:
        """Apply a reviewed YAML file, and retract annotations of its earlier versions."""
        from lumos.annotations.enrichment import enrich

        with self._writer.batch_publishing():
            return enrich(self._settings, self._writer, Path(file), dry_run=dry_run)

    def infer(self, *, dry_run: bool = False) -> AnnotationReport:
        """Fill empty descriptions and terms from names, by the rules of the configuration."""
        from lumos.annotations.inference import infer

        with self._writer.batch_publishing():
            return infer(self._settings, self._writer, dry_run=dry_run)

    def missing(self, dataset: str | None = None) -> MissingDocsReport:
        """The datasets without documentation that the configuration requires."""
        from lumos.annotations.requirements import find_missing_docs

        return find_missing_docs(self._settings.documentation, self._writer.store, dataset)

    def describe(
        self,
        reporter: str,
        descriptions: Iterable[tuple[str, DatasetDescription]],
        *,
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Replace all annotations of a tool by its descriptions of datasets, by URN."""
        with self._writer.batch_publishing():
            return apply_descriptions(self._writer, reporter, descriptions, dry_run=dry_run)

    def list(self, dataset: str | None = None) -> AnnotationListReport:
        """All annotations of datasets and their fields, owners included."""
        return list_annotations(self._writer.store, dataset, slots=get_args(Slot))
