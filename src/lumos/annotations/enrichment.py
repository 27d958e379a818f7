"""`lumos enrich FILE`: brings the store to what a file under review says."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lumos.annotations.directory import Directory
from lumos.annotations.file_items import ENRICH, FileItems
from lumos.annotations.locations import lasting_name
from lumos.annotations.owner_names import owner_of
from lumos.annotations.owners import owner_type
from lumos.annotations.reporters import apply_report
from lumos.annotations.reports import WordsReport
from lumos.annotations.rules import owner_name
from lumos.annotations.selection import UnknownField, fields_in, found_urn, matching, unknown_field
from lumos.annotations.verbs import refuse_told
from lumos.annotations.writer import AnnotationWriter
from lumos.config import Settings
from lumos.config.enrichment import (
    DatasetEntry,
    Enrichment,
    EnrichmentFile,
    FieldEntry,
    OwnerEntry,
    file_problem,
    read_enrichment,
)
from lumos.config.yaml_tree import ConfigProblem, ConfigurationError
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset, Owner
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.words import FILE, Key, Slot
from lumos.schemas.changes import last_split
from lumos.store import KnownDataset, Store
from lumos.store.remarks import said_of

_LABELS: Final[tuple[tuple[Slot, str], ...]] = (
    ("tag", "tags"),
    ("term", "terms"),
    ("compliance", "compliance"),
)
_TOGETHER: Final = 200


def enrich(
    settings: Settings, scribe: AnnotationWriter, file: Path, *, dry_run: bool
) -> WordsReport:
    """Applies a file; what an earlier version of it said and this one does not is taken back."""
    read = read_enrichment(file, lambda name, fields: _missing(scribe.store, name, fields))
    said = read.enrichment
    reporter = f"{FILE}{said.name or lasting_name(settings, file)}"
    people = _People(scribe, said)
    entries = _Entries(scribe.store, read, people)
    report = entries.report()
    own = FileItems(scribe, read, reporter)
    items = own.write(dry_run=dry_run)
    written = apply_report(scribe, reporter, report, dry_run=dry_run, action=ENRICH)
    gone = [] if dry_run else own.take_back()
    return msgspec.structs.replace(
        written,
        items=tuple(dict.fromkeys((*items, *written.items, *gone))),
        remarks=tuple(entries.remarks),
    )


def _missing(store: Store, name: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a file names and the store does not have, where the rest of the file cannot be read."""
    try:
        if DatasetPattern(name).is_open:
            return
        schema = store.get(found_urn(store, name)).schema
    except MisuseError as error:
        yield "", str(error)
        return
    for field in fields:
        if not fields_in(schema, [field]):
            yield field, str(unknown_field([field], f"'{name}'", [schema] if schema else []))


class _People:
    """Whom names of owners in a file mean."""

    def __init__(self, scribe: AnnotationWriter, said: Enrichment) -> None:
        self._directory = Directory(scribe, users=said.users, groups=said.groups)
        self._plain = self._directory.meant(
            owner_of(entry.name)
            for dataset in said.datasets
            for entry in dataset.owners
            if entry.name is not None
        )

    def owner(self, entry: OwnerEntry) -> Owner:
        type = owner_type(entry.type)
        if entry.name is not None:
            return msgspec.structs.replace(self._plain[owner_of(entry.name)], type=type)
        wanted = Owner(name=str(entry.user), type=type)
        if entry.group is not None:
            wanted = Owner(name=entry.group, kind="group", type=type)
        if self._directory.kind(wanted.name) not in (None, wanted.kind):
            raise MisuseError(f"'{wanted.name}' is no {wanted.kind}, but of the other kind.")
        return wanted


class _Entries:
    """The entries of a file on datasets, and which datasets they mean."""

    def __init__(self, store: Store, read: EnrichmentFile, people: _People) -> None:
        self._store = store
        self._read = read
        self._people = people
        self._problems: list[ConfigProblem] = []
        self.remarks: list[str] = []

    def report(self) -> dict[str, dict[Key, str]]:
        """What the file says, by URN; later entries complete earlier ones."""
        report: dict[str, dict[Key, str]] = {}
        for number, entry in enumerate(self._read.enrichment.datasets):
            words = self._words(number, entry)
            for dataset, paths in self._meant(number, entry):
                try:
                    refuse_told(dataset, entry.properties)
                except MisuseError as error:
                    self._note(number, str(error), "properties")
                    break
                said = report.setdefault(dataset.urn, {})
                said |= {key: value for key, value in words.items() if not key.path}
                for key, value in words.items():
                    said |= {key._replace(path=path): value for path in paths.get(key.path, ())}
        if self._problems:
            raise ConfigurationError(self._problems)
        return report

    def _words(self, number: int, entry: DatasetEntry) -> dict[Key, str]:
        words: dict[Key, str] = {}
        for slot in ("description", "business_context", "domain"):
            if text := (getattr(entry, slot) or "").strip():
                words[Key("", slot)] = text
        for each in entry.owners:
            try:
                words[Key("", "owner", owner_name(self._people.owner(each)))] = ""
            except MisuseError as error:
                self._note(number, str(error), "owners")
        words |= dict(_labels("", entry))
        for name, field in entry.fields.items():
            if text := (field.description or "").strip():
                words[Key(name, "description")] = text
            words |= dict(_labels(name, field))
        return words

    def _meant(
        self, number: int, entry: DatasetEntry
    ) -> Iterator[tuple[Dataset, dict[str, list[str]]]]:
        """The datasets of an entry, each with the paths of those of the fields that it has."""
        missing = dict.fromkeys(entry.fields)
        schemas = []
        urns = self._urns(number, entry)
        for dataset, spoken_of in self._datasets(urns):
            paths = {name: fields_in(dataset.schema, [name]) for name in entry.fields}
            if dataset.schema is not None:
                schemas.append(dataset.schema)
            for name, found in paths.items():
                if found or name in spoken_of:
                    missing.pop(name, None)
                if not found and name in spoken_of:
                    place = self._read.key(number, "fields", name)
                    self.remarks.append(f"{place}: the field {name} is gone from {dataset.urn}.")
                    paths[name] = [name]
            yield dataset, paths
        for name in missing if urns else ():
            error: UnknownField = unknown_field([name], f"'{entry.dataset}'", schemas)
            self._note(number, str(error), "fields", name)

    def _urns(self, number: int, entry: DatasetEntry) -> list[str]:
        place = self._read.dataset(number)
        try:
            pattern = DatasetPattern(entry.dataset)
            if not pattern.is_open:
                known = self._store.ledger.known(found_urn(self._store, entry.dataset))
                if known.state == "live":
                    return [known.urn]
                parts = self._live_parts(known)
                text = f"was split; applied to its {len(parts):,} parts." if parts else "is gone."
                self.remarks.append(f"{place}: {known.urn} {text}")
                return parts
        except MisuseError as error:
            self._note(number, str(error), "dataset")
            return []
        urns = [each.urn for each in matching(self._store, pattern)]
        if not urns:
            self.remarks.append(f"{place}: no dataset matches '{entry.dataset}' now.")
        return urns

    def _live_parts(self, known: KnownDataset) -> list[str]:
        """The datasets that took the place of one that was split, which its annotations fit too."""
        split = last_split(self._store, known.urn) if known.state == "split" else None
        urns = [] if split is None else split.parts
        return [
            urn
            for start in range(0, len(urns), _TOGETHER)
            for urn, stored in self._store.entries.some(urns[start : start + _TOGETHER]).items()
            if stored.known.state == "live"
        ]

    def _datasets(self, urns: list[str]) -> Iterator[tuple[Dataset, set[str]]]:
        """Datasets, each with the paths that anybody has spoken of."""
        for start in range(0, len(urns), _TOGETHER):
            for stored in self._store.entries.some(urns[start : start + _TOGETHER]).values():
                said = said_of(stored.beside)
                yield stored.dataset, {key.path for words in said.values() for key in words}

    def _note(self, number: int, text: str, *key: str) -> None:
        self._problems.append(file_problem(self._read.key(number, *key), text))


def _labels(path: str, entry: DatasetEntry | FieldEntry) -> Iterator[tuple[Key, str]]:
    for slot, name in _LABELS:
        for label in getattr(entry, name):
            yield Key(path, slot, label), ""
    for name, text in entry.properties.items():
        yield Key(path, "property", name), text
