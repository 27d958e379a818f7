"""What of the values in a column may be kept, and shown.

Counts always. Of the values themselves:

| column                                  | range, mean, quantiles | frequent values               |
|-----------------------------------------|------------------------|-------------------------------|
| numbers, dates, times, booleans         | yes                    | of 10 rows and 0.1 % at least |
| texts                                   | no, lengths only       | if `profile.values` names it  |
| bytes, lists, maps                      | no, lengths only       | no                            |
| labelled as private, or in such dataset | no                     | no                            |
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

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
from lumos.model.nesting import leaves
from lumos.model.schema import Field, Schema
from lumos.model.types import quoted_name

if TYPE_CHECKING:
    pass

AnyDataset = TypeVar("AnyDataset", bound=Dataset)

LEAST_COUNT: Final = 10
LEAST_SHARE: Final = 0.001
_MOST_SHOWN: Final = 10
# Words of tags, terms and compliance labels that say that somebody's life is in the data.
_PRIVATE: Final = frozenset({
    "pii", "phi", "pci", "pd", "spi", "personal", "personally", "private", "privacy", "sensitive",
    "confidential", "restricted", "secret", "gdpr", "dsgvo", "ccpa", "cpra", "lgpd", "hipaa",
    "biometric", "health", "medical", "credential", "credentials",
})  # fmt: skip
# "Not sensitive" and its like are a word on the data as well.
_DENIALS: Final = frozenset({"no", "non", "not", "none", "without"})
# A denial reaches no further than to here: of "no export, confidential", only the export.
# "PII: none" is an answer.
_BREAK: Final = re.compile(r"[^\w\s.:=-]+|[.:]\s+(?!no(?:ne)?\W*$)|\s-+\s", re.IGNORECASE)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# "PIIs", "personaldata"
_ENDING: Final = re.compile(r"(data|info|information)?s?$")


def is_private(labels: Iterable[str]) -> bool:
    """Whether one of the labels says that values must not be told."""
    return any(_is_private(label) for label in labels)


def _is_private(label: str) -> bool:
    return any(_says_private(_words(part)) for part in _BREAK.split(label))


def _says_private(words: Sequence[str]) -> bool:
    """Whether a private word stands there that is not denied itself, as by "non-" or ".none"."""
    for place, word in enumerate(words):
        is_denied = place > 0 and words[place - 1] in _DENIALS
        is_answered = len(words) == place + 2 and words[place + 1] in _DENIALS
        if _stem(word) in _PRIVATE and not is_denied and not is_answered:
            return True
    return False


def _words(text: str) -> list[str]:
    """The words, those that only capitals tell apart, too."""
    words: list[str] = []
    for run in _LETTERS.findall(text):
        is_one = _stem(run.casefold()) in _PRIVATE
        words += [run.casefold()] if is_one else map(str.casefold, _WORD.findall(run))
    return words


def _stem(word: str) -> str:
    return word if word in _PRIVATE else _ENDING.sub("", word, count=1)


def private_paths(
    schema: Schema | None, paths: Iterable[str], governance: Governance | None
) -> set[str]:
    """Those of the paths that a label on them, around them or on the dataset makes private."""
    if governance is not None and is_private(_labels(governance)):
        return set(paths)
    labelled = [
        place for field in (schema.fields if schema else ()) for place in _labelled_places(field)
    ]
    return {path for path in paths if any(_is_in(path, place) for place in labelled)}


def _labelled_places(field: Field) -> list[str]:
    whole = [quoted_name(field.name)] if is_private(_labels(field)) else []
    return [*whole, *(note.path for note in field.nested if is_private(_labels(note)))]


def _labels(labelled: object) -> list[str]:
    return [
        label for name in ("tags", "terms", "compliance") for label in getattr(labelled, name, ())
    ]


def _is_in(path: str, place: str) -> bool:
    # What is said of an element or a value holds for the list or map that is measured.
    return (
        path == place
        or path.startswith((f"{place}.", f"{place}[", f"{place}{{"))
        or any(place.startswith(f"{path}{mark}") for mark in ("[", "{"))
    )


def frequent(counts: Iterable[tuple[str, int]], *, rows: int) -> tuple[ValueCount, ...]:
    """The values that so many rows have that they tell of nobody."""
    least = max(LEAST_COUNT, LEAST_SHARE * rows)
    shown = [ValueCount(value=value, count=count) for value, count in counts if count >= least]
    return tuple(shown[:_MOST_SHOWN])


def without_values(profile: Profile, paths: Collection[str] | None = None) -> Profile:
    """The profile with nothing but counts of some columns, or of all."""
    columns = {
        path: _counts(column) if paths is None or path in paths else column
        for path, column in profile.columns.items()
    }
    return msgspec.structs.replace(profile, columns=columns)


def _counts(column: ColumnProfile) -> ColumnProfile:
    return msgspec.structs.replace(
        column, minimum=None, maximum=None, mean=None, stddev=None, quantiles={}, top=()
    )


def for_catalogs(entry: AnyDataset) -> AnyDataset:
    """A dataset as catalogs may hear of it: without any value of its profile."""
    quality = entry.quality
    if quality is None or quality.profile is None:
        return entry
    counts = msgspec.structs.replace(quality, profile=without_values(quality.profile))
    return msgspec.structs.replace(entry, quality=counts)


def guarded(dataset: Dataset) -> Quality | None:
    """The quality as it may be told today: labels may have come since it was measured.

    Nor are values told of a column that is gone, whose labels went with it.
    """
    quality = dataset.quality
    if quality is None or quality.profile is None:
        return quality
    private = private_paths(dataset.schema, quality.profile.columns, dataset.governance)
    profile = without_values(quality.profile, private | _gone(dataset.schema, quality.profile))
    return msgspec.structs.replace(quality, profile=profile)


def without_ranges(statistics: Statistics, paths: Collection[str] | None = None) -> Statistics:
    """The statistics without the lowest and highest values of some columns, or of all."""
    columns = {
        path: msgspec.structs.replace(column, minimum=None, maximum=None)
        if paths is None or path in paths
        else column
        for path, column in statistics.columns.items()
    }
    return msgspec.structs.replace(statistics, columns=columns)


def guarded_statistics(dataset: Dataset) -> Statistics | None:
    """The statistics as they may be told: no range of a private column."""
    statistics = dataset.statistics
    if statistics is None:
        return None
    private = private_paths(dataset.schema, statistics.columns, dataset.governance)
    return without_ranges(statistics, private)


def _gone(schema: Schema | None, profile: Profile) -> set[str]:
    if schema is None:
        return set()
    return profile.columns.keys() - {path for path, _, _ in leaves(schema)}
