"""Descriptions of what nobody described, from names, by the rules of the configuration."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import translate
from typing import Final, NamedTuple

import msgspec

from lumos.annotations.items import Items
from lumos.annotations.lists import entries
from lumos.annotations.locations import fits
from lumos.annotations.reports import WordsReport
from lumos.annotations.rules import words_in
from lumos.annotations.writer import UNSAID, AnnotationWriter, Wanted
from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.type_path import nested_parts
from lumos.model.types import quoted_name
from lumos.model.words import INFERRED, Key, Words
from lumos.store import KnownDataset
from lumos.store.remarks import said_of

_ACTION: Final = "enrich --infer"


class _Meaning(NamedTuple):
    """What columns of a name mean."""

    names: re.Pattern[str]
    term: str


def infer(settings: Settings, scribe: AnnotationWriter, *, dry_run: bool) -> WordsReport:
    """Fills descriptions and terms that are empty; what no rule gives any more is taken back."""
    if not settings.glossary_mappings and not settings.path_patterns:
        raise MisuseError(
            "There are no rules to infer from. Write some under glossary_mappings or path_patterns "
            "in lumos.yaml."
        )
    rules = _Rules(settings.glossary_mappings, settings.path_patterns)
    meant = []
    for stored in entries(scribe.store, None):
        rules.known[stored.known.urn] = stored.known
        own = said_of(stored.beside).get(INFERRED, {})
        wanted = rules.edit(stored.dataset, own)
        if any(key not in own or own[key].value != value for key, value in wanted.items()):
            meant.append(stored.known.urn)
    written = scribe.write(
        meant, rules.edit, action=_ACTION, target="*", reporter=INFERRED, dry_run=dry_run
    )
    items = Items(scribe)
    new = items.unknown_terms(sorted(rules.used))
    added = [f"term {term.name}" for term in new]
    if new and not dry_run:
        added = items.put(new, action=_ACTION)
    return msgspec.structs.replace(written, items=tuple(added))


class _Rules:
    """What names mean, and which terms came of it."""

    def __init__(self, glossary: Mapping[str, str], paths: Mapping[str, str]) -> None:
        self._meanings = [
            _Meaning(re.compile(translate(name.casefold())), term.strip())
            for name, term in glossary.items()
        ]
        # The longest pattern says most about where a dataset lies.
        longest_first = sorted(paths.items(), key=lambda rule: -len(rule[0]))
        self._places = [(DatasetPattern(pattern), text) for pattern, text in longest_first]
        self.used: set[str] = set()
        self.known: dict[str, KnownDataset] = {}

    def edit(self, dataset: Dataset, own: Words) -> Wanted:
        """What is inferred of a dataset where nobody else says anything."""
        now = words_in(dataset)
        others = {key for key, value in now.items() if key not in own or own[key].value != value}
        said = {
            key: value
            for key, value in self._inferred(dataset)
            if (key not in others or key in own)
            and not (key.slot == "term" and _has_term(key.path, others))
        }
        self.used |= {key.name for key in said if key.slot == "term"}
        return {**dict.fromkeys(own.keys() - said.keys(), UNSAID), **said}

    def _inferred(self, dataset: Dataset) -> Iterator[tuple[Key, str]]:
        for pattern, text in self._places:
            if fits(pattern, self.known[dataset.urn], dataset):
                yield Key("", "description"), text
                break
        for path, name in _named_fields(dataset):
            for names, term in self._meanings:
                if names.match(name.casefold()):
                    yield Key(path, "description"), term
                    yield Key(path, "term", term), ""
                    break


def _has_term(path: str, keys: set[Key]) -> bool:
    return any(key.path == path and key.slot == "term" for key in keys)


def _named_fields(dataset: Dataset) -> Iterator[tuple[str, str]]:
    for field in dataset.schema.fields if dataset.schema else ():
        yield quoted_name(field.name), field.name
        for part in nested_parts(field):
            if part.name is not None:
                yield part.path, part.name
