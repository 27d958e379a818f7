"""Decides which values of a column may be stored and displayed.

Counts are always allowed, values according to this table:

| column                                  | range, mean, quantiles | frequent values               |
|-----------------------------------------|------------------------|-------------------------------|
| numbers, dates, times, booleans         | yes                    | of 10 rows and 0.1 % at least |
| texts                                   | no, lengths only       | if `profile.values` names it  |
| bytes, lists, maps                      | no, lengths only       | no                            |
| labelled as private, or in such dataset | no                     | no                            |
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from lumos.model.dataset import (
    ColumnProfile,
    Dataset,
    Governance,
    Profile,
    Quality,
    Statistics,
    ValueCount,
)
from lumos.model.schema import Field, Schema
from lumos.model.type_path import leaf_fields
from lumos.model.types import quoted_name

AnyDataset = TypeVar("AnyDataset", bound=Dataset)

MIN_COUNT: Final = 10
MIN_SHARE: Final = 0.001
_MAX_FREQUENT_VALUES: Final = 10
# Words in tags, terms and compliance labels that mark personal or confidential data.
_PRIVATE_WORDS: Final = frozenset({
    "pii", "phi", "pci", "pd", "spi", "personal", "personally", "private", "privacy", "sensitive",
    "confidential", "restricted", "secret", "gdpr", "dsgvo", "ccpa", "cpra", "lgpd", "hipaa",
    "biometric", "health", "medical", "credential", "credentials",
})  # fmt: skip
# Negations such as "not sensitive".
_NEGATIONS: Final = frozenset({"no", "non", "not", "none", "without"})
# The end of a negation: in "no export, confidential", only "export" is negated. In "PII: none",
# the colon does not end it.
_NEGATION_END: Final = re.compile(r"[^\w\s.:=-]+|[.:]\s+(?!no(?:ne)?\W*$)|\s-+\s", re.IGNORECASE)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Suffixes that do not change the meaning, as in "PIIs" and "personaldata".
_SUFFIX: Final = re.compile(r"(data|info|information)?s?$")


def is_private(labels: Iterable[str]) -> bool:
    """Whether one of the labels forbids recording values."""
    return any(
        _has_private_word(_words(part)) for label in labels for part in _NEGATION_END.split(label)
    )


def _has_private_word(words: Sequence[str]) -> bool:
    """Whether a private word occurs without a negation such as "non-" before or ".none" after."""
    for index, word in enumerate(words):
        is_negated_before = index > 0 and words[index - 1] in _NEGATIONS
        is_negated_after = len(words) == index + 2 and words[index + 1] in _NEGATIONS
        if _stem(word) in _PRIVATE_WORDS and not is_negated_before and not is_negated_after:
            return True
    return False


def _words(text: str) -> list[str]:
    """The words of a text in lower case, also split at capitals."""
    words: list[str] = []
    for run in _LETTERS.findall(text):
        is_one_word = _stem(run.casefold()) in _PRIVATE_WORDS
        words += [run.casefold()] if is_one_word else map(str.casefold, _WORD.findall(run))
    return words


def _stem(word: str) -> str:
    return word if word in _PRIVATE_WORDS else _SUFFIX.sub("", word, count=1)


def private_paths(
    schema: Schema | None, paths: Iterable[str], governance: Governance | None
) -> set[str]:
    """The paths that are private because of a label on them, on an outer field or the dataset."""
    if governance is not None and is_private(_labels(governance)):
        return set(paths)
    labelled = [
        path_in_field
        for field in (schema.fields if schema else ())
        for path_in_field in _labelled_paths(field)
    ]
    return {
        path for path in paths if any(_is_in(path, path_in_field) for path_in_field in labelled)
    }


def _labelled_paths(field: Field) -> list[str]:
    own_path = [quoted_name(field.name)] if is_private(_labels(field)) else []
    return [*own_path, *(note.path for note in field.nested if is_private(_labels(note)))]


def _labels(labelled: object) -> list[str]:
    return [
        label for name in ("tags", "terms", "compliance") for label in getattr(labelled, name, ())
    ]


def _is_in(path: str, enclosing: str) -> bool:
    # A label on an element or a value applies to the list or map that is profiled.
    return (
        path == enclosing
        or path.startswith((f"{enclosing}.", f"{enclosing}[", f"{enclosing}{{"))
        or any(enclosing.startswith(f"{path}{mark}") for mark in ("[", "{"))
    )


def select_frequent(counts: Iterable[tuple[str, int]], *, rows: int) -> tuple[ValueCount, ...]:
    """Return values that are too frequent to identify a person."""
    min_count = max(MIN_COUNT, MIN_SHARE * rows)
    frequent_values = [
        ValueCount(value=value, count=count) for value, count in counts if count >= min_count
    ]
    return tuple(frequent_values[:_MAX_FREQUENT_VALUES])


def without_values(profile: Profile, paths: Collection[str] | None = None) -> Profile:
    """The profile without the values of the columns at `paths`, or of all columns."""
    columns = {
        path: _counts_only(column) if paths is None or path in paths else column
        for path, column in profile.columns.items()
    }
    return msgspec.structs.replace(profile, columns=columns)


def _counts_only(column: ColumnProfile) -> ColumnProfile:
    return msgspec.structs.replace(
        column, minimum=None, maximum=None, mean=None, stddev=None, quantiles={}, top=()
    )


def for_catalogs(entry: AnyDataset) -> AnyDataset:
    """The entry to publish to catalogs, without values of its profile."""
    quality = entry.quality
    if quality is None or quality.profile is None:
        return entry
    quality_without_values = msgspec.structs.replace(
        quality, profile=without_values(quality.profile)
    )
    return msgspec.structs.replace(entry, quality=quality_without_values)


def allowed_quality(dataset: Dataset) -> Quality | None:
    """Return the quality without values that are private according to the current labels.

    Values of removed columns are omitted too, since their labels no longer exist.
    """
    quality = dataset.quality
    if quality is None or quality.profile is None:
        return quality
    private = private_paths(dataset.schema, quality.profile.columns, dataset.governance)
    profile = without_values(
        quality.profile, private | _removed_columns(dataset.schema, quality.profile)
    )
    return msgspec.structs.replace(quality, profile=profile)


def without_ranges(statistics: Statistics, paths: Collection[str] | None = None) -> Statistics:
    """The statistics without minimum and maximum of the columns at `paths`, or of all columns."""
    columns = {
        path: msgspec.structs.replace(column, minimum=None, maximum=None)
        if paths is None or path in paths
        else column
        for path, column in statistics.columns.items()
    }
    return msgspec.structs.replace(statistics, columns=columns)


def allowed_statistics(dataset: Dataset) -> Statistics | None:
    """The statistics without the value ranges of private columns."""
    statistics = dataset.statistics
    if statistics is None:
        return None
    private = private_paths(dataset.schema, statistics.columns, dataset.governance)
    return without_ranges(statistics, private)


def _removed_columns(schema: Schema | None, profile: Profile) -> set[str]:
    if schema is None:
        return set()
    return profile.columns.keys() - {path for path, _, _ in leaf_fields(schema)}
