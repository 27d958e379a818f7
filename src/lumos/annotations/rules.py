"""Whose words count, and a dataset or a schema with other words.

People's words go before those of reporters, reporters' before those of the place, and what is only
inferred comes last. Of equals, who spoke last is heard. A word without a value says that something
is not so, and silences those below it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lumos.model.dataset import Dataset, Documentation, Governance, Owner, Ownership
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import nested_parts
from lumos.model.types import quoted_name
from lumos.model.words import FILE, IMPORT, INFERRED, PLACE, USER, Key, Said, Slot, Word
from lumos.schemas.paths import column_of

_REPORTERS: Final = 1
_RANKS: Final = {USER: 0, IMPORT: 0, PLACE: 2, INFERRED: 3}
DOCUMENTED: Final[tuple[Slot, ...]] = ("description", "business_context", "domain")
_LABELS: Final[Mapping[Slot, str]] = {"tag": "tags", "term": "terms", "compliance": "compliance"}


class Settled(NamedTuple):
    """The word that counts, and whose it is."""

    reporter: str
    word: Word


def is_person(reporter: str) -> bool:
    """Whether words of this reporter are somebody's own."""
    return _rank(reporter) == 0


def _rank(reporter: str) -> int:
    return 0 if reporter.startswith(FILE) else _RANKS.get(reporter, _REPORTERS)


def settle(said: Said, key: Key) -> Settled | None:
    """The word that counts of all that is said about one thing."""
    candidates = [Settled(reporter, words[key]) for reporter, words in said.items() if key in words]
    return min(candidates, key=_precedence, default=None)


def _precedence(candidate: Settled) -> tuple[int, float, str]:
    at = candidate.word.at
    return _rank(candidate.reporter), -at.timestamp() if at else 0.0, candidate.reporter


def words_in(dataset: Dataset) -> dict[Key, str]:
    """All that a dataset and its fields say now."""
    documented, governance = dataset.documentation, dataset.governance
    found: dict[Key, str] = {}
    for slot in DOCUMENTED:
        if (text := getattr(documented, slot, None)) is not None:
            found[Key("", slot)] = text
    for owner in dataset.ownership.owners if dataset.ownership else ():
        found[Key("", "owner", owner_name(owner))] = ""
    for slot, labels in _LABELS.items():
        found |= {Key("", slot, name): "" for name in getattr(governance, labels, ())}
    found |= {Key("", "property", name): text for name, text in (dataset.properties or {}).items()}
    return found if dataset.schema is None else found | words_on_fields(dataset.schema)


def words_on_fields(schema: Schema) -> dict[Key, str]:
    """All that is said of the fields of a schema."""
    found: dict[Key, str] = {}
    for field in schema.fields:
        if _says_anything(field):
            found |= _words_on(field, quoted_name(field.name))
        for note in field.nested:
            if _says_anything(note):
                found |= _words_on(note, note.path)
    return found


def _says_anything(field: Field | NestedField) -> bool:
    # Of most fields nobody says anything.
    return bool(
        field.description or field.tags or field.terms or field.compliance or field.properties
    )


def _words_on(field: Field | NestedField, path: str) -> dict[Key, str]:
    found: dict[Key, str] = {}
    if field.description:
        found[Key(path, "description")] = field.description
    for slot, labels in _LABELS.items():
        found |= {Key(path, slot, name): "" for name in getattr(field, labels)}
    return found | {Key(path, "property", name): text for name, text in field.properties.items()}


def owner_name(owner: Owner) -> str:
    """An owner and the kind of responsibility, as the name of a word."""
    return f"{owner.type}:{owner.kind}:{owner.name}"


def owner_of(name: str) -> Owner:
    """The owner that the name of a word means."""
    type, kind, who = name.split(":", 2)
    return Owner(name=who, kind="group" if kind == "group" else "user", type=type)


def paths_of(schema: Schema) -> list[str]:
    """The paths of all fields, nested ones after those that they are in."""
    return [
        path
        for field in schema.fields
        for path in (quoted_name(field.name), *(part.path for part in nested_parts(field)))
    ]


def reworded(dataset: Dataset, changes: Mapping[Key, str | None]) -> Dataset:
    """The dataset where these things are said, or are no longer said (None)."""
    own = {key: value for key, value in changes.items() if not key.path}
    schema = dataset.schema
    if schema is not None and len(own) < len(changes):
        schema = reworded_schema(schema, changes)
    return msgspec.structs.replace(
        dataset,
        schema=schema,
        documentation=_documentation(dataset.documentation, own),
        ownership=_ownership(dataset.ownership, own),
        governance=_governance(dataset.governance, own),
        properties=_properties(dataset.properties, own),
    )


def _documentation(
    before: Documentation | None, changes: Mapping[Key, str | None]
) -> Documentation | None:
    said = {key.slot: value for key, value in changes.items() if key.slot in DOCUMENTED}
    if not said:
        return before
    after = msgspec.structs.replace(before or Documentation(), **said)
    return None if before is None and after == Documentation() else after


def _ownership(before: Ownership | None, changes: Mapping[Key, str | None]) -> Ownership | None:
    said = {owner_of(key.name): value for key, value in changes.items() if key.slot == "owner"}
    if not said:
        return before
    owners = _members(before.owners if before else (), said)
    return Ownership(owners=owners) if owners or before is not None else None


def _governance(before: Governance | None, changes: Mapping[Key, str | None]) -> Governance | None:
    labels = _labelled(before or Governance(), changes)
    if not labels:
        return before
    after = msgspec.structs.replace(before or Governance(), **labels)
    return None if before is None and after == Governance() else after


def _properties(
    before: dict[str, str] | None, changes: Mapping[Key, str | None]
) -> dict[str, str] | None:
    said = {key.name: value for key, value in changes.items() if key.slot == "property"}
    if not said:
        return before
    after = _mapped(before or {}, said)
    return after if after or before is not None else None


def _labelled(holder: Any, changes: Mapping[Key, str | None]) -> dict[str, tuple[str, ...]]:
    """Those of the tags, terms and labels of a dataset or a field that change."""
    labels: dict[str, tuple[str, ...]] = {}
    for slot, name in _LABELS.items():
        said = {key.name: value for key, value in changes.items() if key.slot == slot}
        if said:
            labels[name] = _members(getattr(holder, name), said)
    return labels


def _members(before: Sequence[Any], said: Mapping[Any, str | None]) -> tuple[Any, ...]:
    kept = [each for each in before if said.get(each, "") is not None]
    return (
        *kept,
        *(each for each, value in said.items() if value is not None and each not in kept),
    )


def _mapped(before: Mapping[str, str], said: Mapping[str, str | None]) -> dict[str, str]:
    after = {**before, **said}
    return {name: value for name, value in after.items() if value is not None}


def reworded_schema(schema: Schema, changes: Mapping[Key, str | None]) -> Schema:
    """The schema with other words on its fields; what is said of fields it has not is passed by."""
    by_column: dict[str, dict[str, dict[Key, str | None]]] = {}
    for key, value in changes.items():
        if key.path:
            paths = by_column.setdefault(column_of(key.path), {})
            paths.setdefault(key.path, {})[key] = value
    fields = tuple(
        _reworded_field(field, by_column[name])
        if (name := quoted_name(field.name)) in by_column
        else field
        for field in schema.fields
    )
    return Schema(fields=fields)


def _reworded_field(field: Field, changes: Mapping[str, Mapping[Key, str | None]]) -> Field:
    name = quoted_name(field.name)
    inside = {path: said for path, said in changes.items() if path != name}
    words = _field_words(field, changes.get(name, {}))
    if inside:
        words["nested"] = _notes(field, inside)
    return msgspec.structs.replace(field, **words)


def _notes(
    field: Field, changes: Mapping[str, Mapping[Key, str | None]]
) -> tuple[NestedField, ...]:
    notes = {note.path: note for note in field.nested}
    for part in nested_parts(field):
        if (said := changes.get(part.path)) is None:
            continue
        note = notes.get(part.path) or NestedField(path=part.path)
        notes[part.path] = msgspec.structs.replace(note, **_field_words(note, said))
    return tuple(note for note in notes.values() if note != NestedField(path=note.path))


def _field_words(field: Field | NestedField, changes: Mapping[Key, str | None]) -> dict[str, Any]:
    words: dict[str, Any] = dict(_labelled(field, changes))
    for key, value in changes.items():
        if key.slot == "description":
            words["description"] = value
    said = {key.name: value for key, value in changes.items() if key.slot == "property"}
    if said:
        words["properties"] = _mapped(field.properties, said)
    return words


def vanished(schema: Schema | None, said: Said) -> Iterator[Key]:
    """What is said of fields that are not there now."""
    there = frozenset(paths_of(schema)) if schema is not None else frozenset()
    keys: Iterable[Key] = {key for words in said.values() for key in words}
    yield from sorted(key for key in keys if key.path and key.path not in there)
