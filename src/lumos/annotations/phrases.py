"""Changes of what is said of datasets, in words for people."""

from collections.abc import Mapping, Sequence
from typing import Final

from lumos.annotations.rules import DOCUMENTED, owner_of
from lumos.model.words import Key, Slot
from lumos.schemas.wording import few

_FEW: Final = 5
_NOUNS: Final[Mapping[Slot, str]] = {
    "description": "description",
    "business_context": "business context",
    "domain": "domain",
    "owner": "owner",
    "tag": "tag",
    "term": "term",
    "compliance": "compliance label",
    "property": "property",
}
_PLURALS: Final = {"property": "properties"}


def sentences_of(before: Mapping[Key, str], changes: Mapping[Key, str | None]) -> list[str]:
    """What changes, a phrase for each kind of it: `tags pii, gold added to email`."""
    groups: dict[tuple[str, Slot, str], list[str]] = {}
    for key, value in changes.items():
        groups.setdefault((key.path, key.slot, _verb(key, before.get(key), value)), []).append(
            _shown(key)
        )
    return [_phrase(path, slot, verb, names) for (path, slot, verb), names in groups.items()]


def summary_of_words(before: Mapping[Key, str], changes: Mapping[Key, str | None]) -> str:
    """What changes, in one line."""
    phrases = sentences_of(before, changes)
    shown, more = few(phrases, _FEW)
    return "; ".join([*shown, *([f"{more} more changes"] if more else [])])


def _verb(key: Key, before: str | None, after: str | None) -> str:
    if after is None:
        return "removed"
    if key.slot in DOCUMENTED or key.slot == "property":
        return "written" if before is None else "changed"
    return "added"


def _shown(key: Key) -> str:
    if key.slot != "owner":
        return key.name
    owner = owner_of(key.name)
    return f"{owner.name} ({owner.type})"


def _phrase(path: str, slot: Slot, verb: str, names: Sequence[str]) -> str:
    noun = _NOUNS[slot]
    if len(names) > 1:
        noun = _PLURALS.get(noun, f"{noun}s")
    named = f" {', '.join(names)}" if names[0] else ""
    if not path:
        return f"{noun}{named} {verb}"
    if slot == "description":
        return f"{noun} of {path} {verb}"
    where = {"added": "to", "removed": "from"}.get(verb, "of")
    return (
        f"{noun}{named} {verb} {where} {path}"
        if where != "of"
        else f"{noun}{named} of {path} {verb}"
    )
