"""`lumos enrich FILE`: applies the annotations, users, groups and terms of a reviewed file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos.annotations.items import (
    ItemStore,
    OwnerDirectory,
    RegistryItem,
    kind_of,
    label_of,
    replace_given,
)
from lumos.annotations.lists import list_annotations
from lumos.annotations.locations import stable_file_name
from lumos.annotations.owner_names import parse_owner
from lumos.annotations.owners import owner_type
from lumos.annotations.reporters import apply_report
from lumos.annotations.reports import AnnotationReport
from lumos.annotations.rules import LABELS, check_editable_properties, owner_key
from lumos.annotations.writer import AnnotationWriter
from lumos.config import Settings
from lumos.config.enrichment import (
    DatasetEntry,
    EnrichmentFile,
    FieldEntry,
    OwnerEntry,
    file_problem,
    read_enrichment,
)
from lumos.config.yaml_tree import ConfigProblem, ConfigurationError
from lumos.errors import MisuseError
from lumos.model.annotation import FILE, AnnotationKey, Slot
from lumos.model.catalog import GlossaryTerm, Group, User
from lumos.model.cron import parse_schedule
from lumos.model.dataset import Dataset, Owner
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.json_codec import to_json
from lumos.names import find_dataset, find_fields, find_matching, find_urn, unknown_field_error
from lumos.schemas.changes import last_split
from lumos.store import KnownDataset, Store

_ACTION: Final = "enrich"
_TERM_SLOTS: Final[tuple[Slot, ...]] = ("term",)
_BATCH_SIZE: Final = 200


def enrich(
    settings: Settings, writer: AnnotationWriter, file: Path, *, dry_run: bool
) -> AnnotationReport:
    """Apply a file, and retract the annotations that only its earlier version had."""
    parsed = read_enrichment(file, lambda name, fields: _unknown_names(writer.store, name, fields))
    reporter = f"{FILE}{parsed.enrichment.name or stable_file_name(settings, file)}"
    entries = _DatasetEntries(writer, parsed)
    annotations = entries.annotations()
    file_items = _FileItems(writer, parsed, reporter)
    items = file_items.write(dry_run=dry_run)
    written = apply_report(writer, reporter, annotations, dry_run=dry_run, action=_ACTION)
    erased = [] if dry_run else file_items.erase_removed()
    return msgspec.structs.replace(
        written,
        items=tuple(dict.fromkeys((*items, *written.items, *erased))),
        remarks=tuple(entries.remarks),
    )


def _unknown_names(store: Store, name: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Unknown datasets and fields, reported along with the syntax errors of the file."""
    try:
        if DatasetPattern(name).has_wildcards:
            return
        schema = store.get(find_urn(store, name)).schema
    except MisuseError as error:
        yield "", str(error)
        return
    for field in fields:
        if not find_fields(schema, [field]):
            yield field, str(unknown_field_error([field], f"'{name}'", [schema] if schema else []))


class _FileItems:
    """The users, groups and terms of one file.

    The store records each item as the file last wrote it, so that later changes by others are
    detected.
    """

    def __init__(self, writer: AnnotationWriter, file: EnrichmentFile, reporter: str) -> None:
        self._writer = writer
        self._file = file
        self._reporter = reporter
        self._items = ItemStore(writer)
        self._entries: Mapping[type[Any], Mapping[str, msgspec.Struct]] = {
            User: file.enrichment.users,
            Group: file.enrichment.groups,
            GlossaryTerm: file.enrichment.terms,
        }

    def write(self, *, dry_run: bool) -> list[str]:
        """Write the items that are new or different, and return their labels."""
        self._check_kinds()
        self._check_parents()
        new: list[RegistryItem] = []
        for type, entries in self._entries.items():
            known = self._items.all(type) if entries else {}
            for name, entry in entries.items():
                # Fields that an entry omits do not change.
                fields = msgspec.structs.asdict(entry)
                given = {key: value for key, value in fields.items() if value not in (None, ())}
                after: RegistryItem = replace_given(known.get(name) or type(name=name), **given)
                if known.get(name) != after:
                    new.append(after)
        if dry_run:
            return [label_of(item) for item in new]
        written = self._items.put(new, action=_ACTION)
        with self._writer.store.transaction() as transaction:
            for item in new:
                last_written = {item.name: to_json(item)}
                transaction.journal.save_bases(
                    self._reporter, kind_of(item).collection, last_written
                )
        return written

    def erase_removed(self) -> list[str]:
        """Erase items that only an earlier version of the file had, unless used or changed."""
        erased: list[str] = []
        for type, entries in self._entries.items():
            known: dict[str, RegistryItem] = self._items.all(type)
            with self._writer.store.transaction() as transaction:
                kind = kind_of(type(name="")).collection
                last_written = transaction.journal.bases(self._reporter, kind, list(known))
                for name in sorted(last_written.keys() - set(entries)):
                    transaction.journal.save_bases(self._reporter, kind, {name: None})
                    item = known[name]
                    # An item that someone else has changed since is not erased.
                    if to_json(item) == last_written[name] and not _is_used(
                        self._writer.store, item
                    ):
                        label = self._items.erase(transaction, item, action=_ACTION)
                        erased.append(f"{label} (removed)")
        if erased:
            self._writer.publish()
        return erased

    def _check_kinds(self) -> None:
        """Raise an error for a name that would be both a user and a group."""
        file = self._file.enrichment
        users = {*file.users, *(each for group in file.groups.values() for each in group.members)}
        both = (users & {*self._items.all(Group), *file.groups}) | (
            set(file.groups) & set(self._items.all(User))
        )
        if both:
            raise MisuseError(
                f"'{min(both)}' cannot be both a user and a group. Choose another name."
            )

    def _check_parents(self) -> None:
        """Raise an error for unknown parent or related terms, and for cycles of parents."""
        terms = self._file.enrichment.terms
        known = self._items.all(GlossaryTerm)
        parents = {name: term.parent for name, term in known.items()}
        parents |= {name: term.parent or parents.get(name) for name, term in terms.items()}
        problems = []
        for name, term in terms.items():
            named = (*filter(None, (term.parent,)), *term.related)
            unknown = [each for each in named if each not in parents]
            if unknown:
                text = f"No term named '{unknown[0]}' in the glossary."
                problems.append(file_problem(self._file.term(name), text))
            ancestor, seen = term.parent, {name}
            while ancestor is not None and ancestor not in seen:
                seen.add(ancestor)
                ancestor = parents.get(ancestor)
            if ancestor is not None:
                text = f"The term '{name}' is its own ancestor."
                problems.append(file_problem(self._file.term(name), text))
        if problems:
            raise ConfigurationError(problems)


def _is_used(store: Store, item: RegistryItem) -> bool:
    """Whether any dataset has the owner or the term."""
    if isinstance(item, GlossaryTerm):
        listed = list_annotations(store, None, slots=_TERM_SLOTS).annotations
        return any(each.name == item.name for each in listed)
    kind = "group" if isinstance(item, Group) else "user"
    return any(
        (owner.kind, owner.name) == (kind, item.name)
        for ownership in store.aspects("ownership").values()
        for owner in ownership.owners
    )


class _FileOwners:
    """Resolves the names of owners in a file."""

    def __init__(self, writer: AnnotationWriter, file: EnrichmentFile) -> None:
        content = file.enrichment
        self._directory = OwnerDirectory(writer, users=content.users, groups=content.groups)
        self._by_name = self._directory.resolve(
            parse_owner(entry.name)
            for dataset in content.datasets
            for entry in dataset.owners
            if entry.name is not None
        )

    def owner(self, entry: OwnerEntry) -> Owner:
        type = owner_type(entry.type)
        if entry.name is not None:
            return msgspec.structs.replace(self._by_name[parse_owner(entry.name)], type=type)
        owner = Owner(name=str(entry.user), type=type)
        if entry.group is not None:
            owner = Owner(name=entry.group, kind="group", type=type)
        known = self._directory.kind(owner.name)
        if known not in (None, owner.kind):
            raise MisuseError(f"'{owner.name}' is a {known}, not a {owner.kind}.")
        return owner


class _DatasetEntries:
    """The entries of a file for datasets, and the datasets that they refer to."""

    def __init__(self, writer: AnnotationWriter, file: EnrichmentFile) -> None:
        self._store = writer.store
        self._file = file
        self._owners = _FileOwners(writer, file)
        self._problems: list[ConfigProblem] = []
        self.remarks: list[str] = []

    def annotations(self) -> dict[str, dict[AnnotationKey, str]]:
        """The values in the file by URN and key; later entries override earlier ones."""
        annotations: dict[str, dict[AnnotationKey, str]] = {}
        for number, entry in enumerate(self._file.enrichment.datasets):
            values = self._values(number, entry)
            for dataset, paths in self._datasets(number, entry):
                try:
                    check_editable_properties(dataset, entry.properties)
                except MisuseError as error:
                    self._add_problem(number, str(error), "properties")
                    break
                values_of_dataset = annotations.setdefault(dataset.urn, {})
                values_of_dataset |= {key: value for key, value in values.items() if not key.path}
                for key, value in values.items():
                    values_of_dataset |= {
                        key._replace(path=path): value for path in paths.get(key.path, ())
                    }
        if self._problems:
            raise ConfigurationError(self._problems)
        return annotations

    def _values(self, number: int, entry: DatasetEntry) -> dict[AnnotationKey, str]:
        """The values of one entry, with field paths as written in the file."""
        values: dict[AnnotationKey, str] = {}
        for slot in ("description", "business_context", "domain"):
            if text := (getattr(entry, slot) or "").strip():
                values[AnnotationKey("", slot)] = text
        for each in entry.owners:
            try:
                values[AnnotationKey("", "owner", owner_key(self._owners.owner(each)))] = ""
            except MisuseError as error:
                self._add_problem(number, str(error), "owners")
        values |= dict(_labels_and_properties("", entry))
        if (given := entry.schedule) is not None:
            try:
                schedule = parse_schedule(
                    given.cron, timezone=given.timezone, lag=given.availability_lag
                )
                values[AnnotationKey("", "schedule")] = to_json(schedule).decode()
            except MisuseError as error:
                self._add_problem(number, str(error), "schedule")
        for name, field in entry.fields.items():
            if text := (field.description or "").strip():
                values[AnnotationKey(name, "description")] = text
            values |= dict(_labels_and_properties(name, field))
        return values

    def _datasets(
        self, number: int, entry: DatasetEntry
    ) -> Iterator[tuple[Dataset, dict[str, list[str]]]]:
        """Each dataset of an entry with, for each field of the entry, the paths in its schema."""
        missing = dict.fromkeys(entry.fields)
        schemas = []
        urns = self._urns(number, entry)
        for dataset, annotated_paths in self._load(urns):
            paths = {name: find_fields(dataset.schema, [name]) for name in entry.fields}
            if dataset.schema is not None:
                schemas.append(dataset.schema)
            for name, paths_in_schema in paths.items():
                if paths_in_schema or name in annotated_paths:
                    missing.pop(name, None)
                if not paths_in_schema and name in annotated_paths:
                    position = self._file.key(number, "fields", name)
                    self.remarks.append(
                        f"{position}: {dataset.urn} no longer has the field {name}."
                    )
                    paths[name] = [name]
            yield dataset, paths
        for name in missing if urns else ():
            error = unknown_field_error([name], f"'{entry.dataset}'", schemas)
            self._add_problem(number, str(error), "fields", name)

    def _urns(self, number: int, entry: DatasetEntry) -> list[str]:
        """Return the live datasets of an entry; for a split dataset, its live parts."""
        position = self._file.dataset(number)
        try:
            pattern = DatasetPattern(entry.dataset)
            if not pattern.has_wildcards:
                known = find_dataset(self._store, entry.dataset)
                if known.state == "live":
                    return [known.urn]
                parts = self._live_parts(known)
                text = (
                    f"was split; applied to its {len(parts):,} parts." if parts else "was deleted."
                )
                self.remarks.append(f"{position}: {known.urn} {text}")
                return parts
        except MisuseError as error:
            self._add_problem(number, str(error), "dataset")
            return []
        urns = [each.urn for each in find_matching(self._store, pattern)]
        if not urns:
            self.remarks.append(f"{position}: no dataset matches '{entry.dataset}'.")
        return urns

    def _live_parts(self, known: KnownDataset) -> list[str]:
        """The live datasets that a dataset was split into."""
        split = last_split(self._store, known.urn) if known.state == "split" else None
        urns = [] if split is None else split.parts
        return [
            urn
            for start in range(0, len(urns), _BATCH_SIZE)
            for urn, stored in self._store.entries.get_many(
                urns[start : start + _BATCH_SIZE]
            ).items()
            if stored.known.state == "live"
        ]

    def _load(self, urns: list[str]) -> Iterator[tuple[Dataset, set[str]]]:
        """Datasets, each with the field paths that have annotations."""
        for start in range(0, len(urns), _BATCH_SIZE):
            batch = urns[start : start + _BATCH_SIZE]
            annotations = self._store.annotations.of(batch)
            for urn, stored in self._store.entries.get_many(batch).items():
                own = annotations.get(urn, {}).values()
                yield stored.dataset, {key.path for each in own for key in each}

    def _add_problem(self, number: int, text: str, *key: str) -> None:
        self._problems.append(file_problem(self._file.key(number, *key), text))


def _labels_and_properties(
    path: str, entry: DatasetEntry | FieldEntry
) -> Iterator[tuple[AnnotationKey, str]]:
    for slot, name in LABELS.items():
        for label in getattr(entry, name):
            yield AnnotationKey(path, slot, label), ""
    for name, text in entry.properties.items():
        yield AnnotationKey(path, "property", name), text
