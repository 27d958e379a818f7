"""`lumos enrich --infer`: descriptions and terms from names, by rules of the configuration."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import translate
from typing import Final

import msgspec

from lumos.annotations.items import ItemStore, label_of
from lumos.annotations.lists import annotated_entries
from lumos.annotations.locations import is_match
from lumos.annotations.reports import AnnotationReport
from lumos.annotations.rules import annotations_of
from lumos.annotations.writer import RETRACT, AnnotationChanges, AnnotationWriter
from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.model.annotation import INFERRED, AnnotationKey, AnnotationMap
from lumos.model.dataset import Dataset
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.type_path import nested_parts
from lumos.model.types import quoted_name
from lumos.store import KnownDataset

_ACTION: Final = "enrich --infer"


def infer(settings: Settings, writer: AnnotationWriter, *, dry_run: bool) -> AnnotationReport:
    """Fill empty descriptions and terms, and retract values that the rules no longer infer."""
    if not settings.glossary_mappings and not settings.path_patterns:
        raise MisuseError(
            "There are no rules to infer from. Write some under glossary_mappings or path_patterns "
            "in lumos.yaml."
        )
    rules = _InferenceRules(settings.glossary_mappings, settings.path_patterns)
    urns = []
    for stored, annotations in annotated_entries(writer.store, None):
        rules.known[stored.known.urn] = stored.known
        own = annotations.get(INFERRED, {})
        changes = rules.edit(stored.dataset, own)
        if any(key not in own or own[key].value != value for key, value in changes.items()):
            urns.append(stored.known.urn)
    written = writer.write(
        urns, rules.edit, action=_ACTION, target="*", reporter=INFERRED, dry_run=dry_run
    )
    items = ItemStore(writer)
    new = items.new_terms(sorted(rules.used_terms))
    labels = items.put(new, action=_ACTION) if new and not dry_run else map(label_of, new)
    return msgspec.structs.replace(written, items=tuple(labels))


class _InferenceRules:
    """Infers annotations from names, and collects the terms that were used."""

    def __init__(self, glossary: Mapping[str, str], paths: Mapping[str, str]) -> None:
        self._terms = [
            (re.compile(translate(name.casefold())), term.strip())
            for name, term in glossary.items()
        ]
        # The longest pattern is the most specific one.
        longest_first = sorted(paths.items(), key=lambda rule: -len(rule[0]))
        self._paths = [(DatasetPattern(pattern), text) for pattern, text in longest_first]
        self.used_terms: set[str] = set()
        self.known: dict[str, KnownDataset] = {}

    def edit(self, dataset: Dataset, own: AnnotationMap) -> AnnotationChanges:
        """The inferred values for keys that no other reporter has annotated."""
        values = annotations_of(dataset)
        others = {key for key, value in values.items() if key not in own or own[key].value != value}
        paths_with_terms = {key.path for key in others if key.slot == "term"}
        inferred = {
            key: value
            for key, value in self._infer_values(dataset)
            if (key not in others or key in own)
            and not (key.slot == "term" and key.path in paths_with_terms)
        }
        self.used_terms |= {key.name for key in inferred if key.slot == "term"}
        return {**dict.fromkeys(own.keys() - inferred.keys(), RETRACT), **inferred}

    def _infer_values(self, dataset: Dataset) -> Iterator[tuple[AnnotationKey, str]]:
        for pattern, text in self._paths:
            if is_match(pattern, self.known[dataset.urn], dataset):
                yield AnnotationKey("", "description"), text
                break
        for path, name in _named_fields(dataset):
            for name_pattern, term in self._terms:
                if name_pattern.match(name.casefold()):
                    yield AnnotationKey(path, "description"), term
                    yield AnnotationKey(path, "term", term), ""
                    break


def _named_fields(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Path and name of every column and struct member."""
    for field in dataset.schema.fields if dataset.schema else ():
        yield quoted_name(field.name), field.name
        for part in nested_parts(field):
            if part.name is not None:
                yield part.path, part.name
