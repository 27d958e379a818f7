"""What reporters such as dbt projects and SQL files say of datasets, as words of theirs."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec

from lumos.annotations.directory import Directory
from lumos.annotations.items import Item, Items, kind_of
from lumos.annotations.reports import WordsReport
from lumos.annotations.rules import owner_name, owner_of
from lumos.annotations.selection import fields_in
from lumos.annotations.writer import UNSAID, AnnotationWriter, Wanted
from lumos.lineage.reported_lineage import ReportedAnnotations
from lumos.model.dataset import Dataset, Owner
from lumos.model.words import Key, Words

# What a reporter says, by URN. Paths are as it spells them.
Report: TypeAlias = Mapping[str, Mapping[Key, str]]


def apply_described(
    scribe: AnnotationWriter,
    reporter: str,
    described: Iterable[tuple[str, ReportedAnnotations]],
    *,
    only: Collection[str] | None = None,
    dry_run: bool = False,
) -> WordsReport:
    """Makes what a reporter says of datasets, by URN, all that it says of any.

    People's words win over the reporter's, and what it does not repeat goes, unless others say it
    as well. Datasets that the store does not have are passed by. Of two descriptions of one
    dataset the later one completes the earlier. With `only` some datasets, its words on others
    stay.
    """
    report: dict[str, dict[Key, str]] = {}
    told = list(described)
    people = Directory(scribe).meant(owner for _, each in told for owner in each.owners)
    for urn, each in told:
        report.setdefault(urn, {}).update(_words(each, people))
    return apply_report(scribe, reporter, report, only=only, dry_run=dry_run, action="describe")


def apply_report(
    scribe: AnnotationWriter,
    reporter: str,
    report: Report,
    *,
    only: Collection[str] | None = None,
    dry_run: bool,
    action: str,
) -> WordsReport:
    """Makes the words in a report all that its reporter says of any dataset, or of `only` some."""
    store = scribe.store
    now = {store.resolve(urn): words for urn, words in report.items()}

    def edit(dataset: Dataset, own: Words) -> Wanted:
        said = _found(dataset, now.get(dataset.urn, {}))
        return {**dict.fromkeys(own.keys() - said.keys(), UNSAID), **said}

    written = scribe.write(
        [*now, *(urn for urn in store.remarks.urns(reporter) if only is None or urn in only)],
        edit,
        action=action,
        target=reporter,
        reporter=reporter,
        dry_run=dry_run,
    )
    keys = [key for words in report.values() for key in words]
    new = _new_items(scribe, keys) if keys else []
    items = tuple(f"{kind_of(each).singular} {each.name}" for each in new)
    if new and not dry_run:
        items = tuple(Items(scribe).put(new, action=action))
    return msgspec.structs.replace(written, items=items)


def _new_items(scribe: AnnotationWriter, keys: Iterable[Key]) -> list[Item]:
    items = Items(scribe)
    named = list(keys)
    owners = items.unknown_owners(owner_of(key.name) for key in named if key.slot == "owner")
    terms = items.unknown_terms(key.name for key in named if key.slot == "term")
    return [*owners, *terms]


def _found(dataset: Dataset, words: Mapping[Key, str]) -> dict[Key, str]:
    """The words on the fields that a dataset has; those on others wait under their own path."""
    found: dict[Key, str] = {}
    paths: dict[str, str] = {"": ""}
    for key, value in words.items():
        if key.path not in paths:
            paths[key.path] = next(iter(fields_in(dataset.schema, [key.path])), key.path)
        found[key._replace(path=paths[key.path])] = value
    return found


def _words(described: ReportedAnnotations, people: Mapping[Owner, Owner]) -> dict[Key, str]:
    words: dict[Key, str] = {}
    if described.description:
        words[Key("", "description")] = described.description
    words |= {Key("", "owner", owner_name(people[owner])): "" for owner in described.owners}
    words |= {Key("", "tag", tag): "" for tag in described.tags}
    words |= {Key("", "property", name): text for name, text in described.properties.items()}
    for column, text in described.columns.items():
        if text:
            words[Key(column, "description")] = text
    for column, tags in described.column_tags.items():
        words |= {Key(column, "tag", tag): "" for tag in tags}
    return words
