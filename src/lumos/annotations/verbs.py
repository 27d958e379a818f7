"""The verbs of `lumos tag`, `doc`, `property`, `term` and `compliance`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from shlex import quote
from typing import Final

import msgspec

from lumos.annotations.items import Items, changed
from lumos.annotations.lists import entries, listed
from lumos.annotations.reports import TermReport, WordListReport, WordsReport
from lumos.annotations.rules import DOCUMENTED, vanished
from lumos.annotations.selection import chosen, fields_in, meant, unknown_field
from lumos.annotations.writer import UNSAID, AnnotationWriter, Unsaid, Wanted
from lumos.errors import MisuseError, UnknownName
from lumos.model.catalog import GlossaryTerm
from lumos.model.dataset import Dataset
from lumos.model.schema import Schema
from lumos.model.words import Key, Slot, Words
from lumos.store.remarks import said_of

# What is said of one thing, whatever it is said of: which slot, which name, and what.
Saying = Mapping[tuple[Slot, str], str | Unsaid | None]
_LONGEST: Final = 100_000


class Desk:
    """Writes and lists words of some slots."""

    def __init__(self, scribe: AnnotationWriter, *slots: Slot, noun: str) -> None:
        self._scribe = scribe
        self._slots = slots
        self._noun = noun

    def list(self, dataset: str | None = None, *, fields: Sequence[str] = ()) -> WordListReport:
        """What is said of datasets, or of some of their fields."""
        return listed(self._scribe.store, dataset, slots=self._slots, fields=fields)

    def _say(
        self,
        verb: str,
        dataset: str,
        saying: Saying,
        *,
        fields: Sequence[str],
        dry_run: bool,
    ) -> WordsReport:
        return say(
            self._scribe,
            dataset,
            saying,
            fields=fields,
            dry_run=dry_run,
            action=f"{self._noun} {verb}",
        )


def say(
    scribe: AnnotationWriter,
    dataset: str,
    saying: Saying,
    *,
    fields: Sequence[str],
    dry_run: bool,
    action: str,
    check: Callable[[Dataset], None] = lambda _dataset: None,
) -> WordsReport:
    """Lets the person at the keyboard say something of datasets, or of fields of them."""
    known = chosen(scribe.store, dataset)
    is_taken = not any(isinstance(value, str) for value in saying.values())
    gone = _gone(scribe, dataset, fields) if fields and is_taken else {}
    seen: list[Schema] = []
    met = False

    def edit(each: Dataset, _own: Words) -> Wanted:
        nonlocal met
        check(each)
        paths = [*fields_in(each.schema, fields), *gone.get(each.urn, ())] if fields else [""]
        met = met or bool(paths)
        if not met and each.schema is not None:
            seen.append(each.schema)
        return {
            Key(path, slot, name): value for path in paths for (slot, name), value in saying.items()
        }

    report = scribe.write(
        [each.urn for each in known], edit, action=action, target=dataset, dry_run=dry_run
    )
    if fields and not met:
        raise unknown_field(fields, known[0].urn if len(known) == 1 else f"'{dataset}'", seen)
    return report


def _gone(scribe: AnnotationWriter, dataset: str, fields: Sequence[str]) -> dict[str, list[str]]:
    """The fields that are meant and gone, of which something is still said, by URN."""
    return {
        stored.known.urn: meant(fields, list(dict.fromkeys(key.path for key in keys)))
        for stored in entries(scribe.store, dataset)
        if (keys := list(vanished(stored.dataset.schema, said_of(stored.beside))))
    }


class Labels(Desk):
    """Tags or compliance labels."""

    def __init__(self, scribe: AnnotationWriter, slot: Slot, *, noun: str) -> None:
        super().__init__(scribe, slot, noun=noun)
        self._slot: Slot = slot

    def set(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> WordsReport:
        """Puts labels on datasets, or on fields of them."""
        saying: Saying = {(self._slot, name): "" for name in _names(names, self._noun)}
        return self._say("set", dataset, saying, fields=fields, dry_run=dry_run)

    def remove(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        mine: bool = False,
        dry_run: bool = False,
    ) -> WordsReport:
        """Takes labels off, whoever put them on; `mine` only takes people's word for it back."""
        gone = UNSAID if mine else None
        saying: Saying = {(self._slot, name): gone for name in _names(names, self._noun)}
        return self._say("remove", dataset, saying, fields=fields, dry_run=dry_run)


class Docs(Desk):
    """Descriptions, business context and domains."""

    def __init__(self, scribe: AnnotationWriter) -> None:
        super().__init__(scribe, *DOCUMENTED, noun="doc")

    def set(
        self,
        dataset: str,
        description: str | None = None,
        *,
        context: str | None = None,
        domain: str | None = None,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> WordsReport:
        """Writes what people should know; what is not given stays as it is."""
        given = {"description": description, "business_context": context, "domain": domain}
        texts = {slot: text.strip() for slot, text in given.items() if text is not None}
        if not texts:
            raise MisuseError(
                "Nothing to write. Give a description, --context or --domain: "
                "lumos doc set DATASET TEXT"
            )
        for slot, text in texts.items():
            if not text:
                raise MisuseError(
                    f"The {slot.replace('_', ' ')} is empty. "
                    "Take one away with: lumos doc remove DATASET"
                )
            if len(text) > _LONGEST:
                raise MisuseError(f"The {slot} has more than {_LONGEST:,} characters.")
        if fields and texts.keys() - {"description"}:
            raise MisuseError("Fields have a description only; context and domain are a dataset's.")
        saying = {(slot, ""): texts[slot] for slot in DOCUMENTED if slot in texts}
        return self._say("set", dataset, saying, fields=fields, dry_run=dry_run)

    def remove(
        self,
        dataset: str,
        *,
        description: bool = False,
        context: bool = False,
        domain: bool = False,
        fields: Sequence[str] = (),
        mine: bool = False,
        dry_run: bool = False,
    ) -> WordsReport:
        """Takes documentation away: what is named, or else all of it."""
        named = {"description": description, "business_context": context, "domain": domain}
        if fields:
            named = {"description": True}
        wanted = [slot for slot in DOCUMENTED if named.get(slot)] or list(DOCUMENTED)
        saying: Saying = {(slot, ""): UNSAID if mine else None for slot in wanted}
        return self._say("remove", dataset, saying, fields=fields, dry_run=dry_run)


class Properties(Desk):
    """Free-form properties."""

    def __init__(self, scribe: AnnotationWriter) -> None:
        super().__init__(scribe, "property", noun="property")

    def set(
        self,
        dataset: str,
        properties: Mapping[str, str],
        *,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> WordsReport:
        """Gives datasets, or fields of them, properties."""
        names = _names(tuple(properties), self._noun)
        saying: Saying = {("property", name): properties[name] for name in names}
        return self._write("set", dataset, saying, fields, dry_run)

    def remove(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        mine: bool = False,
        dry_run: bool = False,
    ) -> WordsReport:
        """Takes properties away."""
        gone = UNSAID if mine else None
        saying: Saying = {("property", name): gone for name in _names(names, self._noun)}
        return self._write("remove", dataset, saying, fields, dry_run)

    def _write(
        self, verb: str, dataset: str, saying: Saying, fields: Sequence[str], dry_run: bool
    ) -> WordsReport:
        names = [name for _, name in saying]

        def check(each: Dataset) -> None:
            if not fields:
                refuse_told(each, names)

        return say(
            self._scribe,
            dataset,
            saying,
            fields=fields,
            dry_run=dry_run,
            action=f"property {verb}",
            check=check,
        )


def refuse_told(dataset: Dataset, names: Iterable[str]) -> None:
    """Fails where properties are those that a place tells by itself."""
    if dataset.definition is None and not _is_told(dataset):
        return
    mark = f"{dataset.platform}."
    for name in names:
        if name.startswith(mark):
            raise MisuseError(
                f"'{name}': what begins with {mark} is told by the place itself. Choose another "
                "name."
            )


def _is_told(dataset: Dataset) -> bool:
    mark = f"{dataset.platform}."
    return any(name.startswith(mark) for name in dataset.properties or {})


class Terms(Labels):
    """Glossary terms: what they mean, and which data they are about."""

    def __init__(self, scribe: AnnotationWriter) -> None:
        super().__init__(scribe, "term", noun="term")
        self._items = Items(scribe)

    def set(
        self,
        dataset: str,
        *names: str,
        fields: Sequence[str] = (),
        dry_run: bool = False,
    ) -> WordsReport:
        """Says which terms datasets or fields are about; a new term is added to the glossary."""
        with self._scribe.herald.together():
            return self._set(dataset, *names, fields=fields, dry_run=dry_run)

    def _set(self, dataset: str, *names: str, fields: Sequence[str], dry_run: bool) -> WordsReport:
        report = super().set(dataset, *names, fields=fields, dry_run=dry_run)
        new = self._items.unknown_terms(_names(names, self._noun))
        if not new:
            return report
        added = [f"term {term.name}" for term in new]
        if not dry_run:
            added = self._items.put(new, action="term define")
        hint = tuple(
            f"'{term.name}' is a new term without a definition. Write one with: "
            f"lumos term set {quote(term.name)} --definition TEXT"
            for term in new
        )
        return msgspec.structs.replace(report, items=tuple(added), remarks=hint)

    def define(
        self,
        name: str,
        *,
        definition: str | None = None,
        display_name: str | None = None,
        parent: str | None = None,
        domain: str | None = None,
        related: Sequence[str] | None = None,
        owners: Sequence[str] | None = None,
    ) -> TermReport:
        """Says what a term means; what is not given stays as it is."""
        (name,) = _names((name,), self._noun)
        known = self._items.all(GlossaryTerm)
        for other in (*filter(None, (parent,)), *(related or ())):
            if other not in known:
                raise unknown_term(other, known)
        term = changed(
            known.get(name) or GlossaryTerm(name=name),
            definition=definition,
            display_name=display_name,
            parent=parent,
            domain=domain,
            related=None if related is None else tuple(related),
            owners=None if owners is None else tuple(owners),
        )
        _check_parents(term, known)
        self._items.put([term], action="term define")
        return TermReport(term=term, created=name not in known, changed=known.get(name) != term)

    def undefine(self, name: str) -> TermReport:
        """Takes a term out of the glossary, where nothing is about it any more."""
        known = self._items.all(GlossaryTerm)
        if name not in known:
            raise unknown_term(name, known)
        below = [each.name for each in known.values() if each.parent == name]
        used = [word.dataset for word in self.list().words if word.name == name]
        if below or used:
            if below:
                by = f"the parent of {below[0]}. Give that another one with: lumos term set "
                by += f"{quote(below[0])} --parent TERM"
            else:
                by = f"used by {used[0]}. Take it off with: lumos term remove {quote(used[0])} "
                by += quote(name)
            raise MisuseError(f"The term '{name}' is still {by}")
        with self._scribe.store.transaction() as transaction:
            self._items.erase(transaction, known[name], action="term undefine")
        self._scribe.herald.tell()
        return TermReport(term=known[name], created=False, changed=True)

    def list(self, dataset: str | None = None, *, fields: Sequence[str] = ()) -> WordListReport:
        """The glossary and what is about its terms."""
        report = super().list(dataset, fields=fields)
        glossary = tuple(self._items.all(GlossaryTerm).values())
        return msgspec.structs.replace(report, glossary=glossary)


def unknown_term(name: str, known: Iterable[str]) -> UnknownName:
    """The error that the glossary has no such term."""
    return UnknownName("term", name, known, next=f"Add it with: lumos term set {quote(name)}")


def _check_parents(term: GlossaryTerm, known: Mapping[str, GlossaryTerm]) -> None:
    above, seen = term.parent, [term.name]
    while above is not None:
        if above in seen:
            raise MisuseError(f"A term cannot stand above itself: {' < '.join((*seen, above))}")
        seen.append(above)
        above = known[above].parent if above in known else None


def _names(names: Sequence[str], noun: str) -> list[str]:
    wanted = [name.strip() for name in names]
    if not wanted or not all(wanted):
        raise MisuseError(f"Name at least one {noun}; an empty name is none.")
    return list(dict.fromkeys(wanted))
