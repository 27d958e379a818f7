"""Whose the words are that a dataset bears, and what a scan or an import makes of them."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lumos.annotations.rules import (
    paths_of,
    reworded,
    reworded_schema,
    settle,
    words_in,
    words_on_fields,
)
from lumos.discovery.source_metadata import is_from_source, source_annotations
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.discovery import SourceMetadata
from lumos.model.schema import Schema
from lumos.model.words import IMPORT, PLACE, Key, Said, Word, Words
from lumos.store.entries import StoredEntry
from lumos.store.remarks import is_remark, row_of, said_of


def attributed(
    said: Said, dataset: Dataset, now: Mapping[Key, str], keys: Iterable[Key], *, is_scanned: bool
) -> dict[str, Words]:
    """What is said, with words under the keys that nobody claims given to whoever they must be of.

    `now` is all that the dataset says.

    Fields of a scanned dataset have them from their place. What else a place did not tell came from
    people, through an import.
    """
    after = {reporter: dict(words) for reporter, words in said.items()}
    for key in keys:
        if key in now and not any(key in words for words in said.values()):
            of_place = is_scanned if key.path else is_from_source(dataset, key)
            after.setdefault(PLACE if of_place else IMPORT, {})[key] = Word(value=now[key])
    return dict(after)


def seen_again(
    said: Said, found: Schema, told: SourceMetadata | None, platform: str
) -> dict[str, Words]:
    """What is said, after the place was asked once more for its own words."""
    said = respelled(said, found)
    now = words_on_fields(found)
    if told is not None:
        now |= source_annotations(told, platform)
    spoken_of = {key for words in said.values() for key in words}
    # Files tell nothing of their dataset as a whole; what they were thought to have told stays.
    kept = (
        {}
        if told is not None
        else {key: word for key, word in said.get(PLACE, {}).items() if not key.path}
    )
    place = kept | {key: Word(value=now[key]) for key in spoken_of if key in now}
    others = {reporter: words for reporter, words in said.items() if reporter != PLACE}
    return {**others, PLACE: place} if place else others


def respelled(said: Said, found: Schema) -> dict[str, Words]:
    """What is said, where a field that is only spelled in other letters is the same field."""
    there = paths_of(found)
    lost = {key.path for words in said.values() for key in words if key.path} - set(there)
    if not lost:
        return dict(said)
    alike: dict[str, list[str]] = {}
    for path in there:
        alike.setdefault(path.casefold(), []).append(path)
    now = {path: alike[path.casefold()] for path in lost if path.casefold() in alike}
    same = {path: paths[0] for path, paths in now.items() if len(paths) == 1}
    return {
        reporter: {
            **{
                key._replace(path=same.get(key.path, key.path)): word for key, word in words.items()
            },
            **{key: word for key, word in words.items() if key.path not in same},
        }
        for reporter, words in said.items()
    }


def adopted(said: Said, recorded: Schema, found: Schema) -> dict[str, Words]:
    """What is said, with the words of an imported schema that its place has none for."""
    claimed = {key for words in said.values() for key in words}
    silent = words_on_fields(recorded).keys() - words_on_fields(found).keys() - claimed
    words = words_on_fields(recorded)
    own = {**said.get(IMPORT, {}), **{key: Word(value=words[key]) for key in silent}}
    return {**said, IMPORT: own} if own else dict(said)


def written(schema: Schema, said: Said) -> Schema:
    """A schema as its place tells it, with the words that count."""
    keys = {key for words in said.values() for key in words if key.path}
    if not keys:
        return schema
    now = words_on_fields(schema)
    changes = {key: value for key in sorted(keys) if now.get(key) != (value := _value(said, key))}
    return reworded_schema(schema, changes) if changes else schema


def retold(dataset: Dataset, said: Said) -> Dataset:
    """A dataset as its place tells it, with the words on it that count."""
    keys = {key for words in said.values() for key in words if not key.path}
    now = words_in(dataset)
    changes = {
        key: value
        for key in sorted(keys)
        if key.slot in ("description", "owner", "property")
        and now.get(key) != (value := _value(said, key))
    }
    return reworded(dataset, changes) if changes else dataset


def _value(said: Said, key: Key) -> str | None:
    found = settle(said, key)
    return None if found is None else found.word.value


def after_import(
    entry: CatalogEntry, before: StoredEntry, *, is_scanned: bool, at: datetime
) -> dict[str, bytes]:
    """Whose words are whose after an import, as it is kept beside the dataset.

    What an import changed are words of people elsewhere, and the newest ones.
    """
    rows = {name: body for name, body in before.beside.items() if is_remark(name)}
    if not rows and (not is_scanned or entry.schema == before.dataset.schema):
        return {}
    said = said_of(before.beside)
    claimed = {key for words in said.values() for key in words}
    there = set(paths_of(entry.schema)) if entry.schema is not None else set()
    old, new = words_in(before.dataset), words_in(entry)
    changed = {
        key: Word(value=new.get(key), at=at)
        for key in old.keys() | new.keys()
        if old.get(key) != new.get(key)
        and (key in claimed or (is_scanned and key.path))
        and (not key.path or key.path in there)
    }
    if changed:
        name, body = row_of(IMPORT, {**said.get(IMPORT, {}), **changed})
        rows[name] = body
    return rows
