"""How much schemas have in common, and which values of a path go with columns of their own."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import ceil
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from lumos.discovery.grouping.patterns import IN_DATED_NAMES, IN_NAMES, WITH_DATE
from lumos.discovery.hints import ColumnSplit
from lumos.discovery.summaries import MOST_VALUES, PlaceSummary
from lumos.model.schema import Schema
from lumos.model.types import Array, DataType, Map, Struct

# Files that share so much of their fields are related.
_RELATED: Final = 0.5
# From so many schemas under one pattern on, containment is not looked for.
_MOST_COMPARED: Final = 500

T = TypeVar("T", bound=Hashable)
Fields = frozenset[str]


class SchemasByFingerprint(Protocol):
    """Schemas by their full fingerprint."""

    def __getitem__(self, full: str, /) -> Schema: ...


def leaf_fields(schema: Schema) -> Fields:
    """The names of all leaf fields, as paths in lower case."""
    names: set[str] = set()
    for field in schema.fields:
        name = field.name.strip().lower()
        if isinstance(field.type, Struct | Array | Map):
            names.update(_leaves(name, field.type))
        else:
            names.add(name)
    return frozenset(names)


class FieldsByFingerprint(dict[str, Fields]):
    """The leaf fields of schemas, worked out once for each schema that is asked for."""

    def __init__(self, schemas: SchemasByFingerprint) -> None:
        self._schemas = schemas

    def __missing__(self, full: str) -> Fields:
        return self.setdefault(full, leaf_fields(self._schemas[full]))


def clusters(fields_of: Mapping[T, Fields], *, share: float) -> list[list[T]]:
    """Items linked, directly or through others, by so large a share of all their fields."""
    first_with: dict[Fields, T] = {}
    groups = DisjointSets(fields_of)
    for item, fields in fields_of.items():
        groups.join(item, first_with.setdefault(fields, item))
    every = list(first_with)
    numbers = DisjointSets(range(len(every)))
    for number, near in _candidates(every, share):
        # Most of what is near is linked already; set operations pass over it at once.
        near -= numbers.members(number)
        while near:
            other = near.pop()
            common = len(every[number] & every[other])
            if common >= share * (len(every[number]) + len(every[other]) - common):
                numbers.join(number, other)
                groups.join(first_with[every[number]], first_with[every[other]])
                near -= numbers.members(number)
    return groups.sets()


def split_by_columns(
    dataset: str,
    places: Sequence[PlaceSummary],
    schemas: SchemasByFingerprint,
    kept: ColumnSplit | None = None,
    own: Mapping[str, Sequence[PlaceSummary]] | None = None,
) -> tuple[dict[str, list[PlaceSummary]], ColumnSplit | None]:
    """The datasets of files under one pattern, and the decision to remember.

    Only values that are neither dates nor counts may name datasets, and only where files of
    different values have fewer than half of their fields in common. Along dates and counts,
    columns drift. `own` are the datasets that an earlier decision, `kept`, set apart.
    """
    labels = sorted(
        label
        for label in {label for place in places for label in place.others}
        if not label.startswith(WITH_DATE)
        # In dated files an identifier of one date says no more than the date does.
        and (not label.startswith(IN_DATED_NAMES) or _recurs(label, places))
    )
    if not labels:
        return {dataset: list(places)}, kept
    fields = {full: leaf_fields(schemas[full]) for full in sorted({place.full for place in places})}
    best = min(_ways_to_split(places, fields, labels), key=lambda way: way.rank, default=None)
    if kept is not None and kept.label in labels:
        # An earlier scan decided by this value, so it names whatever is new.
        some = [place for place in places if kept.label in place.others]
        apart = best.clusters if best is not None and best.label == kept.label else [some]
        best = _Way(kept.label, apart)
    if best is None:
        return {dataset: list(places)}, kept
    known = {
        path: {leaf_fields(schemas[place.full]) for place in some}
        for path, some in (own or {}).items()
    }
    named, datasets = _named(dataset, best, {} if kept is None else kept.datasets, fields, known)
    # Files without the value are what the pattern is called.
    rest = [place for place in places if best.label not in place.others]
    if rest:
        named.setdefault(dataset, []).extend(rest)
    return named, ColumnSplit(dataset, best.label, datasets)


class DisjointSets(Generic[T]):
    """Items that are joined pair by pair; every item knows its set."""

    def __init__(self, items: Iterable[T]) -> None:
        self._set_of = {item: item for item in items}
        self._members = {item: {item} for item in self._set_of}

    def find(self, item: T) -> T:
        return self._set_of[item]

    def members(self, item: T) -> set[T]:
        return self._members[self._set_of[item]]

    def join(self, left: T, right: T) -> None:
        small, large = self._set_of[left], self._set_of[right]
        if small == large:
            return
        if len(self._members[small]) > len(self._members[large]):
            small, large = large, small
        for item in self._members[small]:
            self._set_of[item] = large
        self._members[large] |= self._members.pop(small)

    def sets(self) -> list[list[T]]:
        found: dict[T, list[T]] = {}
        for item, joined in self._set_of.items():
            found.setdefault(joined, []).append(item)
        return list(found.values())


class _Way(NamedTuple):
    """A value of the path that goes with the columns, and the places of each cluster.

    Where some files lack the value, the pattern is theirs: `with_rest` are the clusters that share
    their columns. Otherwise it is None.
    """

    label: str
    clusters: list[list[PlaceSummary]]
    with_rest: list[list[PlaceSummary]] | None = None

    @property
    def is_key(self) -> bool:
        """Whether the value stands in a level `key=value`."""
        return not self.label[:1].isdigit() and not self.is_in_name

    @property
    def is_in_name(self) -> bool:
        """Whether the value stands in the names of files."""
        return self.label.startswith((IN_NAMES, IN_DATED_NAMES))

    @property
    def rank(self) -> tuple[int, bool, bool, str]:
        """The most clusters first, then keys before folders before names of files."""
        return -len(self.clusters), not self.is_key, self.is_in_name, self.label

    def is_named_by_pattern(self, rank: int, cluster: list[PlaceSummary]) -> bool:
        """Whether a cluster, by its rank, is what the pattern is called."""
        is_first = rank == 0 and len(self.values(cluster)) > 1
        return is_first and (self.with_rest is None or cluster in self.with_rest)

    def values(self, places: Iterable[PlaceSummary]) -> list[str]:
        return sorted({value for place in places for value in place.others[self.label]})


def _ways_to_split(
    places: Sequence[PlaceSummary], fields: Mapping[str, Fields], labels: Iterable[str]
) -> Iterator[_Way]:
    """For each value of the paths, the sets of files that it tells apart.

    Files of one value belong together, and files that share half of their fields. A schema that is
    contained in exactly one other belongs to it: contained in several, it belongs to none of them.
    """
    alike = clusters(fields, share=_RELATED) if len(set(fields.values())) > 1 else []
    if len(alike) < 2:
        return
    contained = (
        [(left, right) for left, right in permutations(fields, 2) if fields[left] <= fields[right]]
        if len(fields) <= _MOST_COMPARED
        else []
    )
    for label in labels:
        some = [place for place in places if label in place.others]
        sets = DisjointSets(fields)
        first_with: dict[str, str] = {}
        for place in some:
            for value in place.others[label]:
                sets.join(place.full, first_with.setdefault(value, place.full))
        for first, *others in alike:
            for other in others:
                sets.join(first, other)
        neighbours: dict[str, set[str]] = {}
        for left, right in contained:
            pair = {sets.find(left), sets.find(right)}
            if len(pair) == 2:
                for each in pair:
                    neighbours.setdefault(each, set()).update(pair - {each})
        for near, others_near in neighbours.items():
            if len(others_near) == 1 and neighbours[next(iter(others_near))] == {near}:
                sets.join(near, next(iter(others_near)))
        found: dict[str, list[PlaceSummary]] = {}
        for place in some:
            found.setdefault(sets.find(place.full), []).append(place)
        of_rest = {sets.find(place.full) for place in places if label not in place.others}
        if len(found) > 1 or (of_rest and of_rest.isdisjoint(found)):
            with_rest = [some for key, some in found.items() if key in of_rest]
            yield _Way(label, list(found.values()), with_rest if of_rest else None)


def _recurs(label: str, places: Sequence[PlaceSummary]) -> bool:
    """Whether some value stands in files of several dates."""
    dated = {pair for place in places for pair in place.others.get(f"{WITH_DATE}{label}", ())}
    return len({pair.partition(WITH_DATE)[0] for pair in dated}) < len(dated)


def _named(
    dataset: str,
    way: _Way,
    kept: Mapping[str, str],
    fields: Mapping[str, Fields],
    known: Mapping[str, Collection[Fields]],
) -> tuple[dict[str, list[PlaceSummary]], dict[str, str]]:
    """The dataset of each cluster, and of each value.

    Values stay where an earlier scan put them, and new ones join the dataset whose columns they
    have. At first the cluster with most values, if it has several, is what the pattern is called;
    all others are named by their first value.
    """
    ranked = sorted(
        way.clusters,
        key=lambda some: (-len(way.values(some)), -sum(place.file_count for place in some)),
    )
    named: dict[str, list[PlaceSummary]] = {}
    datasets = dict(kept)
    for number, some in enumerate(ranked):
        values = way.values(some)
        earlier = Counter(kept[value] for value in values if value in kept)
        related = _most_related({fields[place.full] for place in some}, known)
        if earlier:
            path = earlier.most_common(1)[0][0]
        elif related is not None:
            path = related
        elif len(values) > MOST_VALUES or (not kept and way.is_named_by_pattern(number, some)):
            path = dataset
        else:
            named_by = f"{way.label}={values[0]}" if way.is_key else values[0]
            path = f"{dataset}/{named_by}"
        named.setdefault(path, []).extend(some)
        datasets |= {value: path for value in values[:MOST_VALUES] if value not in kept}
    return named, datasets


def _most_related(
    fields: Collection[Fields], known: Mapping[str, Collection[Fields]]
) -> str | None:
    """The dataset that shares the largest part of its fields with some, if it is half of them."""
    shares = {
        path: max(len(one & other) / len(one | other) for one in fields for other in others)
        for path, others in known.items()
        if others
    }
    best = max(sorted(shares), key=lambda path: shares[path], default=None)
    return best if best is not None and shares[best] >= _RELATED else None


def _candidates(every: Sequence[Fields], share: float) -> Iterator[tuple[int, set[int]]]:
    """For each schema those before it that may share so much of their fields with it.

    Such a pair shares one of the rarest fields of the smaller one, so only those are looked up:
    comparing each pair takes too long where there are thousands.
    """
    counts = Counter(field for fields in every for field in fields)
    with_field: dict[str, set[int]] = {field: set() for field in counts}
    for number, fields in enumerate(every):
        for field in fields:
            with_field[field].add(number)
    for number, fields in enumerate(every):
        rarest = sorted(fields, key=lambda field: (counts[field], field))
        looked_up = rarest[: len(fields) - ceil(share * len(fields)) + 1]
        yield number, set().union(*(with_field[field] for field in looked_up))


def _leaves(path: str, type: DataType) -> Iterator[str]:
    match type:
        case Struct() if type.members:
            for member in type.members:
                yield from _leaves(f"{path}.{member.name.lower()}", member.type)
        case Array():
            yield from _leaves(path, type.element)
        case Map():
            yield from _leaves(path, type.value)
        case _:
            yield path
