"""From places to datasets: hints, path patterns, columns, and what earlier scans decided."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from lumos.model.pattern import strip_extensions
from lumos.pipeline.grouping.columns import SchemasByFingerprint, split_by_columns
from lumos.pipeline.grouping.predecessors import (
    Predecessors,
    find_destinations,
    find_predecessors,
)
from lumos.pipeline.grouping.sidecars import why_sidecar
from lumos.pipeline.grouping.similarity import join_similar
from lumos.pipeline.grouping.state import GroupingState, RememberedPlace, key_of
from lumos.pipeline.hints import ColumnSplit, Hints, hinted_location
from lumos.pipeline.patterns import anchor_of, levels, literal, name_of
from lumos.pipeline.summaries import PartitionKey, PlaceSummary, merged_keys
from lumos.pipeline.values import BRACES

# Marks the key of a dataset that a hint made.
_BY_HINT: Final = "\0hint"
# Where one pattern has files of two formats, the first keeps the plain path.
_FORMAT_RANK: Final = ("parquet", "avro", "orc", "csv", "json")
_PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")
_STARS: Final = re.compile(r"\*[*?]*")
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

    `names` are the templates of its folders and, last, of its files. `renamed_from`, `merged_from`
    and `split_from` are datasets of the last scan that are this one now, or that it was part of.
    """

    dataset: str
    location: str
    places: list[PlaceSummary]
    name: str | None = None
    names: tuple[str, ...] = ()
    ending: str = ""
    rule: Rule = Rule("pattern", "")
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None

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
) -> Grouping:
    """The datasets that places make up, and what the next scan must know of them.

    `tables` are roots of table formats, whose paths no other dataset may have. `was_there` says
    whether the last scan met a file.
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
        groups, joined = join_similar(groups, schemas, before)
        rules |= dict.fromkeys(joined, "similar")
    for each in hinted:
        # A hint has its path to itself: what else would have it gets another one.
        key = (f"{each.dataset}{_BY_HINT}", each.format)
        groups.setdefault(key, []).append(each)
        rules[key] = "hint"
    if before.is_upgrade:
        before = _keep_earlier_paths(groups, before, tables, hints=hints, was_there=was_there)
    names = _paths(groups, before, tables)
    predecessors = find_predecessors(
        {names[key]: some for key, some in groups.items()},
        before,
        place=hints.place,
        was_there=was_there,
    )
    found = [
        _group(
            names[key], some, rules.get(key, "pattern"), predecessors.get(names[key]), hints.root
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
) -> tuple[dict[tuple[str, str], list[PlaceSummary]], list[ColumnSplit]]:
    """Places by the path of their dataset and their format, and the decisions made by columns."""
    by_path: dict[tuple[str, str], list[PlaceSummary]] = {}
    for place in places:
        by_path.setdefault((place.dataset, place.format), []).append(place)
    splits = {split.dataset: split for split in before.splits}
    own = {path for split in before.splits for path in split.own_datasets}
    groups: dict[tuple[str, str], list[PlaceSummary]] = {}
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
    groups: Collection[tuple[str, str]], before: GroupingState, tables: Collection[str]
) -> dict[tuple[str, str], str]:
    """The path of each dataset, all different: as before, or that of its pattern.

    Of two formats under one pattern, the one that was there first has the plain path.
    """
    paths: dict[tuple[str, str], str] = {}
    used = set(tables)
    fresh: list[tuple[str, str]] = []
    by_hint = {key[0].removesuffix(_BY_HINT) for key in groups if key[0].endswith(_BY_HINT)}
    for key in sorted(groups, key=lambda each: (_rank(each[1]), each)):
        earlier = before.names.get(_name_key(*key))
        if earlier is None or earlier in used or earlier in by_hint:
            fresh.append(key)
        else:
            paths[key] = earlier
            used.add(earlier)
    known = before.datasets
    taken_by = {place.dataset: place.format for place in before.places if place.dataset in known}
    # Hints come first, then datasets of the last scan in the format they had.
    fresh.sort(key=lambda key: (not key[0].endswith(_BY_HINT), taken_by.get(key[0]) != key[1]))
    for key in fresh:
        path, format = key[0].removesuffix(_BY_HINT), key[1]
        choices = (path, f"{path}/*.{format}", f"{path}/*.{format}.files")
        chosen = next((each for each in choices if each not in used), f"{path}/{len(used)}")
        paths[key] = chosen
        used.add(chosen)
    return paths


def _keep_earlier_paths(
    groups: Mapping[tuple[str, str], Sequence[PlaceSummary]],
    before: GroupingState,
    tables: Collection[str],
    *,
    hints: Hints,
    was_there: Callable[[str], bool],
) -> GroupingState:
    """The state of an earlier version, with the paths of datasets whose files stay together."""
    key_of_path = {path: key for key, path in _paths(groups, before, tables).items()}
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


def _overrides(names: Mapping[tuple[str, str], str], before: GroupingState) -> dict[str, str]:
    """The paths that patterns alone would not give, or that only one of two formats can have."""
    formats: dict[str, int] = {}
    for path, _ in names:
        formats[path] = formats.get(path, 0) + 1
    return {
        **before.names,
        **{
            _name_key(*key): path
            for key, path in names.items()
            if not key[0].endswith(_BY_HINT) and (path != key[0] or formats[key[0]] > 1)
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
    places: list[PlaceSummary],
    rule: str,
    predecessors: Predecessors | None,
    root: str,
) -> Group:
    usual = max(places, key=lambda place: (place.file_count, place.first_path))
    folders, stem, ending = levels(usual.first_path)
    earlier = predecessors or Predecessors()
    is_pattern = rule == "pattern"
    return Group(
        dataset=dataset,
        location=_location(places, root),
        places=places,
        name=(name_of(usual.first_path) or None) if is_pattern else _name_of_path(dataset),
        names=(
            *(level.template.text for level in folders[_depth(root, usual.first_path) :]),
            stem.text,
        ),
        ending=ending,
        rule=_rule(rule, places),
        renamed_from=earlier.renamed_from,
        merged_from=earlier.merged_from,
        split_from=earlier.split_from,
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


def _location(places: Sequence[PlaceSummary], root: str) -> str:
    """The folder of a dataset, or a pattern for its files, with `*` for what varies in the root."""
    hinted = hinted_location(places[0].pattern)
    if hinted is not None:
        return hinted
    # Files of one dataset may lie in folders of different depth: most of them lie here.
    files: dict[str, int] = {}
    for place in places:
        for location in _locations(place, root):
            files[location] = files.get(location, 0) + place.file_count
    return min(files, key=lambda location: (-files[location], location.count("*"), location))


def _locations(place: PlaceSummary, root: str) -> Iterator[str]:
    anchor = anchor_of(place.first_path)
    fixed = _depth(root, place.first_path)
    paths = {place.first_path, place.last_path}
    for path in paths:
        folders, stem, ending = levels(path)
        names = path[len(anchor) :].strip("/").split("/")
        shown = [
            _glob(level.template.text) if level.template.varies and index >= fixed else name
            for index, (level, name) in enumerate(zip(folders, names, strict=False))
        ]
        if stem.is_writers:
            while len(shown) > fixed and folders[len(shown) - 1].is_partition:
                shown.pop()
        elif stem.varies or len({each.rpartition("/")[2] for each in paths}) > 1:
            shown.append(_glob(stem.text) + ending + ("" if names[-1].endswith(ending) else "*"))
        else:
            shown.append(names[-1])
        yield "/".join([anchor, *shown])


def _depth(root: str, path: str) -> int:
    """How many folders of a path lead to the root; they are the same for all files."""
    return len(list(filter(None, root[len(anchor_of(path)) :].split("/"))))


def _glob(text: str) -> str:
    starred = _PLACEHOLDER.sub(lambda match: match[0] if match[1] in BRACES else "*", text)
    return literal(_STARS.sub("*", starred))
