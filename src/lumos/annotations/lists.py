"""What is said of datasets, and by whom, as lists."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from lumos.annotations.attribution import attributed
from lumos.annotations.reports import Label, SaidWord, WordListReport
from lumos.annotations.rules import settle, vanished, words_in
from lumos.annotations.selection import chosen, fields_in, unknown_field
from lumos.model.words import Key, Said, Slot
from lumos.snapshots.store_entries import is_scanned
from lumos.store import DatasetFilter, Store
from lumos.store.entries import StoredEntry
from lumos.store.remarks import said_of

_TOGETHER: Final = 200


def listed(
    store: Store, dataset: str | None, *, slots: Collection[Slot], fields: Sequence[str] = ()
) -> WordListReport:
    """The words of some slots on the datasets that are meant, or on fields of them."""
    words: list[SaidWord] = []
    count, schemas = 0, []
    for stored in entries(store, dataset):
        count += 1
        paths: set[str] | None = None
        if fields:
            paths = set(fields_in(stored.dataset.schema, fields))
            if not paths and stored.dataset.schema is not None:
                schemas.append(stored.dataset.schema)
        words += [
            word
            for word in _words(stored, slots)
            if paths is None or word.field in paths or word.field in fields
        ]
    if fields and count == len(schemas) and not words:
        raise unknown_field(fields, f"'{dataset}'", schemas)
    return WordListReport(datasets=count, labels=tuple(_labels(words)), words=tuple(words))


def entries(store: Store, dataset: str | None) -> Iterator[StoredEntry]:
    """The live datasets that are meant, or all."""
    known = list(store.list(DatasetFilter())) if dataset is None else chosen(store, dataset)
    remaining = iter(known)
    while some := [each.urn for each in islice(remaining, _TOGETHER)]:
        found = store.entries.some(some)
        yield from (found[urn] for urn in some if urn in found)


def _words(stored: StoredEntry, slots: Collection[Slot]) -> Iterator[SaidWord]:
    said = said_of(stored.beside)
    now = words_in(stored.dataset)
    whose = attributed(said, stored.dataset, now, now, is_scanned=is_scanned(stored))
    for key, value in now.items():
        if key.slot in slots:
            yield _word(stored, whose, key, value, is_gone=False)
    for key in vanished(stored.dataset.schema, said):
        found = settle(said, key)
        if key.slot in slots and found is not None and found.word.value is not None:
            yield _word(stored, said, key, found.word.value, is_gone=True)


def _word(stored: StoredEntry, said: Said, key: Key, value: str, *, is_gone: bool) -> SaidWord:
    found = settle(said, key)
    return SaidWord(
        urn=stored.known.urn,
        dataset=stored.known.name,
        field=key.path,
        slot=key.slot,
        name=key.name,
        value=value or None,
        by=None if found is None else found.reporter,
        author=None if found is None else found.word.author,
        at=None if found is None else found.word.at,
        state="field gone" if is_gone else "said",
    )


def _labels(words: Sequence[SaidWord]) -> Iterator[Label]:
    datasets = {(word.name or word.slot, word.urn) for word in words}
    fields = Counter(word.name or word.slot for word in words if word.field)
    counts = Counter(name for name, _ in datasets)
    for name in sorted(counts):
        yield Label(name=name, datasets=counts[name], fields=fields[name])
