"""Users, groups and terms that a file under review defines, and may take back."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lumos.annotations.items import Item, Items, changed, kind_of
from lumos.annotations.lists import listed
from lumos.annotations.writer import AnnotationWriter
from lumos.config.enrichment import EnrichmentFile, file_problem
from lumos.config.yaml_tree import ConfigurationError
from lumos.errors import MisuseError
from lumos.model.catalog import GlossaryTerm, Group, User
from lumos.model.json_codec import to_json
from lumos.model.words import Slot
from lumos.store import Store

ENRICH: Final = "enrich"
_TERMS: Final[tuple[Slot, ...]] = ("term",)


class FileItems:
    """The people and words of one file; what the file last wrote of them is remembered."""

    def __init__(self, scribe: AnnotationWriter, read: EnrichmentFile, reporter: str) -> None:
        self._scribe = scribe
        self._read = read
        self._reporter = reporter
        self._items = Items(scribe)
        self._said: Mapping[type[Any], Mapping[str, msgspec.Struct]] = {
            User: read.enrichment.users,
            Group: read.enrichment.groups,
            GlossaryTerm: read.enrichment.terms,
        }

    def write(self, *, dry_run: bool) -> list[str]:
        """Writes what is new or different; gives it in words."""
        self._check_kinds()
        self._check_parents()
        new: list[Item] = []
        for type, entries in self._said.items():
            known = self._items.all(type) if entries else {}
            for name, entry in entries.items():
                after: Item = changed(known.get(name) or type(name=name), **_facts(entry))
                if known.get(name) != after:
                    new.append(after)
        if dry_run:
            return [f"{kind_of(item).singular} {item.name}" for item in new]
        written = self._items.put(new, action=ENRICH)
        with self._scribe.store.transaction() as transaction:
            for item in new:
                bases = {item.name: to_json(item)}
                transaction.journal.save_bases(self._reporter, kind_of(item).plural, bases)
        return written

    def take_back(self) -> list[str]:
        """Takes out what only an earlier version of the file had, unless it is used or changed."""
        gone: list[str] = []
        for type, entries in self._said.items():
            known: dict[str, Item] = self._items.all(type)
            with self._scribe.store.transaction() as transaction:
                kind = kind_of(type(name="")).plural
                bases = transaction.journal.bases(self._reporter, kind, list(known))
                for name in sorted(bases.keys() - set(entries)):
                    transaction.journal.save_bases(self._reporter, kind, {name: None})
                    item = known[name]
                    # What somebody has changed since is no longer the file's alone.
                    if to_json(item) == bases[name] and not _is_used(self._scribe.store, item):
                        words = self._items.erase(transaction, item, action=ENRICH)
                        gone.append(f"{words} (gone)")
        if gone:
            self._scribe.herald.tell()
        return gone

    def _check_kinds(self) -> None:
        """Refuses names of both a user and a group."""
        said = self._read.enrichment
        users = {*said.users, *(each for group in said.groups.values() for each in group.members)}
        both = (users & {*self._items.all(Group), *said.groups}) | (
            set(said.groups) & set(self._items.all(User))
        )
        if both:
            raise MisuseError(f"'{min(both)}' cannot be a user and a group; choose another name.")

    def _check_parents(self) -> None:
        terms = self._read.enrichment.terms
        known = self._items.all(GlossaryTerm)
        parents = {name: term.parent for name, term in known.items()}
        parents |= {name: term.parent or parents.get(name) for name, term in terms.items()}
        problems = []
        for name, term in terms.items():
            named = (*filter(None, (term.parent,)), *term.related)
            lost = [each for each in named if each not in parents]
            if lost:
                text = f"No term named '{lost[0]}' in the glossary."
                problems.append(file_problem(self._read.term(name), text))
            above, seen = term.parent, {name}
            while above is not None and above not in seen:
                seen.add(above)
                above = parents.get(above)
            if above is not None:
                text = f"The term '{name}' stands above itself."
                problems.append(file_problem(self._read.term(name), text))
        if problems:
            raise ConfigurationError(problems)


def _facts(entry: msgspec.Struct) -> dict[str, object]:
    """What an entry says; what it leaves out stays as it is."""
    facts = msgspec.structs.asdict(entry)
    return {name: value for name, value in facts.items() if value not in (None, ())}


def _is_used(store: Store, item: Item) -> bool:
    """Whether any dataset still names an owner or a term."""
    if isinstance(item, GlossaryTerm):
        words = listed(store, None, slots=_TERMS).words
        return any(word.name == item.name for word in words)
    kind = "group" if isinstance(item, Group) else "user"
    return any(
        (owner.kind, owner.name) == (kind, item.name)
        for ownership in store.aspects("ownership").values()
        for owner in ownership.owners
    )
