"""From places to datasets: hints, path patterns, columns, and what earlier scans decided."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from lumos.discovery.grouping.columns import (
    FieldsByFingerprint,
    SchemasByFingerprint,
    split_by_columns,
)
from lumos.discovery.grouping.locations import joined_location, location_of, root_depth
from lumos.discovery.grouping.patterns import levels, name_of
from lumos.discovery.grouping.predecessors import Predecessors, find_destinations, find_predecessors
from lumos.discovery.grouping.sidecars import why_sidecar
from lumos.discovery.grouping.similarity import Key, join_similar
from lumos.discovery.grouping.state import GroupingState, RememberedPlace, key_of
from lumos.discovery.grouping.values import BRACES
from lumos.discovery.hints import ColumnSplit, Hints, free_names, hinted_location
from lumos.discovery.summaries import PartitionKey, PlaceSummary, merged_keys
from lumos.model.dataset_pattern import strip_extensions

# Marks the key of a dataset that a hint made.
_BY_HINT: Final = "\0hint"
# Where one pattern has files of two formats, the first keeps the plain path.
_FORMAT_RANK: Final = ("parquet", "avro", "orc", "csv", "json")
_PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")
_IN_WORDS: Final = {
    "hive": "partition values", "n": "numbers", "number": "numbers", "id": "identifiers",
    "uuid": "identifiers", "region": "regions", "ip": "addresses",
}  # fmt: skip


class Rule(NamedTuple):
    """Which rule decided, and why in words."""

    name: str
    reason: str


class Group(NamedTuple):
    """The places of one dataset, where it lies, and which rule put them together.

    `key` is the path that its pattern gives, and its format. `names` are the templates of its
    folders and, last, of its files. `renamed_from`, `merged_from` and `split_from` are datasets of
    the last scan that are this one now, or that it was part of. `wanted` is the path that its hint
    gives, where another dataset has it.
    """

    dataset: str
    location: str
    places: list[PlaceSummary]
    key: Key
    name: str | None = None
    names: tuple[str, ...] = ()
    ending: str = ""
    rule: Rule = Rule("pattern", "")
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None
    wanted: str | None = None

    @property
    def keys(self) -> list[PartitionKey]:
        """The partition keys of all its places."""
        keys: list[PartitionKey] = []
        for place in self.places:
            keys = merged_keys(keys, place.keys)
        return keys


class Grouping(NamedTuple):
    """The datasets, what to remember of them, and the places that only accompany data."""

    groups: list[Group]
    state: GroupingState
    sidecars: list[PlaceSummary]


def group(
    places: Iterable[PlaceSummary],
    schemas: SchemasByFingerprint,
    *,
    hints: Hints,
    before: GroupingState | None = None,
    tables: Collection[str] = (),
    joins_similar: bool = False,
    was_there: Callable[[str], bool] = lambda _path: True,
    recorded_formats: Callable[[Collection[str]], Mapping[str, str | None]] = lambda _paths: {},
) -> Grouping:
    """The datasets that places make up, and what the next scan must know of them.

    `tables` are roots of table formats, whose paths no other dataset may have. `was_there` says
    whether the last scan met a file, `recorded_formats` which formats datasets on record have.
    """
    before = before or GroupingState()
    every = sorted(places, key=key_of)
    hinted = [each for each in every if hinted_location(each.pattern) is not None]
    data, sidecars = _data_and_sidecars(
        (each for each in every if hinted_location(each.pattern) is None), schemas
    )
    groups, splits = _by_pattern(data, schemas, before)
    own = {path for split in splits for path in split.own_datasets}
    rules = {key: "columns" for key in groups if key[0] in own}
    if joins_similar:
        groups, joined = join_similar(groups, FieldsByFingerprint(schemas), before)
        rules |= dict.fromkeys(joined, "similar")
    for each in hinted:
        # Other files may have the same path by their pattern: they are not part of it.
        key = (f"{each.dataset}{_BY_HINT}", each.format)
        groups.setdefault(key, []).append(each)
        rules[key] = "hint"
    if before.is_upgrade:
        before = _keep_earlier_paths(groups, before, tables, hints=hints, was_there=was_there)
    formats = Counter(path for path, _ in groups)
    contested = [path for path, count in formats.items() if count > 1]
    recorded = recorded_formats(contested) if contested else {}
    names = _paths(groups, before, tables, recorded, root=hints.root)
    predecessors = find_predecessors(
        {names[key]: some for key, some in groups.items()},
        before,
        place=hints.place,
        was_there=was_there,
    )
    taken = {*tables, *(path for key, path in names.items() if not _is_by_hint(key))}
    found = [
        _group(
            names[key],
            key,
            some,
            rules.get(key, "pattern"),
            predecessors.get(names[key]),
            hints.root,
            wanted=_plain(key) if _is_by_hint(key) and _plain(key) in taken else None,
        )
        for key, some in groups.items()
    ]
    found.sort(key=lambda each: each.dataset)
    state = GroupingState(
        places=[_remember(place, each.dataset) for each in found for place in each.places],
        names=_overrides(names, before),
        splits=splits,
    )
    return Grouping(found, state, sidecars)


def _by_pattern(
    places: Iterable[PlaceSummary], schemas: SchemasByFingerprint, before: GroupingState
) -> tuple[dict[Key, list[PlaceSummary]], list[ColumnSplit]]:
    """Places by the path of their dataset and their format, and the decisions made by columns."""
    by_path: dict[Key, list[PlaceSummary]] = {}
    for place in places:
        by_path.setdefault((place.dataset, place.format), []).append(place)
    splits = {split.dataset: split for split in before.splits}
    own = {path for split in before.splits for path in split.own_datasets}
    groups: dict[Key, list[PlaceSummary]] = {}
    for (path, format), some in sorted(by_path.items()):
        if path in own or (len(some) == 1 and path not in splits):
            groups.setdefault((path, format), []).extend(some)
            continue
        kept = splits.get(path)
        members = {
            each: by_path.get((each, format), ()) for each in (kept.own_datasets if kept else ())
        }
        parts, split = split_by_columns(path, some, schemas, kept, members)
        for part, places_of_part in parts.items():
            groups.setdefault((part, format), []).extend(places_of_part)
        if split is not None:
            splits[path] = split
    return groups, list(splits.values())


def _paths(
    groups: Collection[Key],
    before: GroupingState,
    tables: Collection[str],
    recorded: Mapping[str, str | None],
    *,
    root: str,
) -> dict[Key, str]:
    """The path of each dataset, all different: as before, or that of its pattern or hint.

    Of two formats under one pattern, the one that was there first has the plain path. A hint gets
    another path where a dataset that it does not take in has the one that it gives.
    """
    paths: dict[Key, str] = {}
    used = set(tables)
    fresh: list[Key] = []
    of_hints = {
        (each.base, each.format): each.dataset
        for each in before.places
        if hinted_location(each.pattern) is not None
    }
    instead: dict[str, str] = {}
    for key in sorted(groups, key=lambda each: (_rank(each[1]), each)):
        earlier = before.names.get(_name_key(*key))
        if earlier is None and _is_by_hint(key):
            earlier = of_hints.get((_plain(key), key[1]))
        if earlier is None or earlier in used:
            fresh.append(key)
            continue
        paths[key] = earlier
        used.add(earlier)
        if _is_by_hint(key):
            instead.setdefault(_plain(key), earlier.removesuffix(f"/*.{key[1]}"))
    known = before.datasets
    last = {place.dataset: place.format for place in before.places if place.dataset in known}
    taken_by = {**last, **recorded}
    # Datasets on record or of the last scan come first, in the format they had, and hints last.
    fresh.sort(key=lambda key: (_is_by_hint(key), taken_by.get(key[0]) != key[1]))
    for key in fresh:
        path, format = _plain(key), key[1]
        if _is_by_hint(key):
            path = instead.setdefault(path, _free_path(path, used, root))
        choices = (path, f"{path}/*.{format}", f"{path}/*.{format}.files")
        chosen = next((each for each in choices if each not in used), f"{path}/{len(used)}")
        paths[key] = chosen
        used.add(chosen)
    return paths


def _is_by_hint(key: Key) -> bool:
    return key[0].endswith(_BY_HINT)


def _plain(key: Key) -> str:
    """The path of a key without the mark of hints."""
    return key[0].removesuffix(_BY_HINT)


def _free_path(path: str, used: Collection[str], root: str) -> str:
    """A path, or one next to it that is not used."""
    if path not in used:
        return path
    folder, _, name = path.rpartition("/")
    if not path.startswith(f"{root.rstrip('/')}/"):
        folder, name = path, "all"
    return next(other for each in free_names(name) if (other := f"{folder}/{each}") not in used)


def _keep_earlier_paths(
    groups: Mapping[Key, Sequence[PlaceSummary]],
    before: GroupingState,
    tables: Collection[str],
    *,
    hints: Hints,
    was_there: Callable[[str], bool],
) -> GroupingState:
    """The state of an earlier version, with the paths of datasets whose files stay together."""
    paths = _paths(groups, before, tables, {}, root=hints.root)
    key_of_path = {path: key for key, path in paths.items()}
    went_to = find_destinations(
        {path: groups[key] for path, key in key_of_path.items()},
        before,
        place=hints.place,
        was_there=was_there,
    )
    names: dict[str, str] = {}
    # Of several that became one, the one with most files comes last.
    for old, targets in sorted(went_to.items(), key=lambda each: sum(each[1].values())):
        if len(targets) == 1:
            names[_name_key(*key_of_path[next(iter(targets))])] = old
    # What is away for this scan comes back under its path.
    away: dict[str, set[str]] = {}
    for each in before.places:
        if each.dataset not in went_to:
            key = _name_key(hints.place(each.first_path).dataset, each.format)
            away.setdefault(each.dataset, set()).add(key)
    for old, keys in away.items():
        if len(keys) == 1:
            names.setdefault(keys.pop(), old)
    return msgspec.structs.replace(before, names=names)


def _overrides(names: Mapping[Key, str], before: GroupingState) -> dict[str, str]:
    """The paths that patterns alone would not give, or that only one of two formats can have."""
    formats: dict[str, int] = {}
    for path, _ in names:
        formats[path] = formats.get(path, 0) + 1
    return {
        **before.names,
        **{
            _name_key(*key): path
            for key, path in names.items()
            if not _is_by_hint(key) and (path != key[0] or formats[key[0]] > 1)
        },
    }


def _name_of_path(path: str) -> str:
    """The name of a dataset by its path; what sets two formats apart is no name."""
    folder, _, name = path.rpartition("/")
    return strip_extensions(folder.rpartition("/")[2] if name.startswith("*.") else name)


def _name_key(path: str, format: str) -> str:
    return f"{format}:{path}"


def _remember(place: PlaceSummary, dataset: str) -> RememberedPlace:
    return RememberedPlace(
        *key_of(place), dataset, place.first_path, place.last_path, place.file_count
    )


def _rank(format: str) -> int:
    return _FORMAT_RANK.index(format) if format in _FORMAT_RANK else len(_FORMAT_RANK)


def _data_and_sidecars(
    places: Iterable[PlaceSummary], schemas: SchemasByFingerprint
) -> tuple[list[PlaceSummary], list[PlaceSummary]]:
    data: list[PlaceSummary] = []
    sidecars: list[PlaceSummary] = []
    for place in places:
        (data if why_sidecar(place, schemas) is None else sidecars).append(place)
    return data, sidecars


def _group(
    dataset: str,
    key: Key,
    places: list[PlaceSummary],
    rule: str,
    predecessors: Predecessors | None,
    root: str,
    *,
    wanted: str | None,
) -> Group:
    usual = max(places, key=lambda place: (place.file_count, place.first_path))
    folders, stem, ending = levels(usual.first_path)
    earlier = predecessors or Predecessors()
    is_pattern = rule == "pattern"
    find_location = joined_location if rule == "similar" else location_of
    return Group(
        dataset=dataset,
        location=find_location(places, root),
        places=places,
        key=key,
        name=(name_of(usual.first_path) or None) if is_pattern else _name_of_path(dataset),
        names=(
            *(level.template.text for level in folders[root_depth(root, usual.first_path) :]),
            stem.text,
        ),
        ending=ending,
        rule=_rule(rule, places),
        renamed_from=earlier.renamed_from,
        merged_from=earlier.merged_from,
        split_from=earlier.split_from,
        wanted=wanted,
    )


def _rule(name: str, places: Sequence[PlaceSummary]) -> Rule:
    match name:
        case "hint":
            return Rule("hint", "a hint says so")
        case "columns":
            return Rule("columns", "files with this value have columns of their own")
        case "similar":
            return Rule("similar", "the source joins datasets that have the same columns")
    kinds = dict.fromkeys(
        _IN_WORDS.get(kind, "dates")
        for place in places
        for kind in _PLACEHOLDER.findall(place.pattern)
        if kind not in BRACES
    )
    if sum(place.file_count for place in places) == 1:
        reason = "no other file has this path pattern"
    elif kinds:
        reason = f"the paths differ only in {' and '.join(kinds)}"
    else:
        reason = "the files have the same path pattern"
    return Rule("pattern", reason)
