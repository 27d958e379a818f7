"""Splits the files of one pattern into datasets, and finds similar datasets, by their columns."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import ceil
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from lumos.discovery.grouping.hints import ColumnSplit, hinted_location
from lumos.discovery.grouping.patterns import (
    DATE_MARK,
    DATED_NAME_LABEL,
    NAME_LABEL,
    assign_file,
    is_named_by_file,
)
from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.lake.summaries import MAX_PATH_VALUES, FileSet
from lumos.model.schema import Schema
from lumos.model.types import Array, DataType, Map, Struct

# Files are related if at least this share of their fields is the same.
_MIN_RELATED_SHARE: Final = 0.5
# If one pattern has more schemas than this, Lumos does not check which ones contain each other.
_MAX_CONTAINMENT_SCHEMAS: Final = 500

T = TypeVar("T", bound=Hashable)
Fields = frozenset[str]


class SchemasByFingerprint(Protocol):
    """Schemas by their fingerprint."""

    def __getitem__(self, fingerprint: str, /) -> Schema: ...


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
    """The leaf fields of schemas, computed once per schema."""

    def __init__(self, schemas: SchemasByFingerprint) -> None:
        self._schemas = schemas

    def __missing__(self, fingerprint: str) -> Fields:
        return self.setdefault(fingerprint, leaf_fields(self._schemas[fingerprint]))


def find_clusters(fields_by_item: Mapping[T, Fields], *, min_share: float) -> list[list[T]]:
    """Cluster items that share at least `min_share` of their fields, directly or through others."""
    first_with: dict[Fields, T] = {}
    item_sets = DisjointSets(fields_by_item)
    for item, fields in fields_by_item.items():
        item_sets.join(item, first_with.setdefault(fields, item))
    all_fields = list(first_with)
    sets = DisjointSets(range(len(all_fields)))
    for number, candidates in _candidates(all_fields, min_share):
        # Most candidates are already in the same set; remove all of them at once.
        candidates -= sets.members(number)
        while candidates:
            other = candidates.pop()
            common = len(all_fields[number] & all_fields[other])
            if common >= min_share * (len(all_fields[number]) + len(all_fields[other]) - common):
                sets.join(number, other)
                item_sets.join(first_with[all_fields[number]], first_with[all_fields[other]])
                candidates -= sets.members(number)
    return item_sets.sets()


def split_by_columns(
    dataset: str,
    file_sets: Sequence[FileSet],
    schemas: SchemasByFingerprint,
    earlier_split: ColumnSplit | None = None,
    earlier_datasets: Mapping[str, Sequence[FileSet]] | None = None,
) -> tuple[dict[str, list[FileSet]], ColumnSplit | None]:
    """Split the files of one pattern into datasets; also return the decision for the next scan.

    A dataset may only be named after a path value that is neither a date nor a counter, and only if
    files with different values have less than half of their fields in common. Columns that change
    with dates or counters are schema changes within one dataset. `earlier_datasets` are the file
    sets of the datasets that `earlier_split` created.
    """
    labels = sorted(
        label
        for label in {label for file_set in file_sets for label in file_set.path_values}
        if not label.startswith(DATE_MARK)
        # In dated files, an identifier that only occurs on one date usually identifies a job.
        and (not label.startswith(DATED_NAME_LABEL) or _occurs_on_several_dates(label, file_sets))
    )
    if not labels:
        return {dataset: list(file_sets)}, earlier_split
    fields = {
        fingerprint: leaf_fields(schemas[fingerprint])
        for fingerprint in sorted({file_set.schema_fingerprint for file_set in file_sets})
    }
    best = min(_find_splits(file_sets, fields, labels), key=lambda split: split.rank, default=None)
    if earlier_split is not None and earlier_split.label in labels:
        # An earlier scan split by this value, so new datasets are named by it as well.
        members = [
            file_set for file_set in file_sets if earlier_split.label in file_set.path_values
        ]
        split_clusters = (
            best.clusters if best is not None and best.label == earlier_split.label else [members]
        )
        best = _Split(earlier_split.label, split_clusters)
    if best is None:
        return {dataset: list(file_sets)}, earlier_split
    fields_by_dataset = {
        path: {leaf_fields(schemas[file_set.schema_fingerprint]) for file_set in members}
        for path, members in (earlier_datasets or {}).items()
    }
    by_dataset, datasets = _name_clusters(
        dataset,
        best,
        {} if earlier_split is None else earlier_split.datasets,
        fields,
        fields_by_dataset,
    )
    # Files without the value get the path of the pattern.
    without_value = [file_set for file_set in file_sets if best.label not in file_set.path_values]
    if without_value:
        by_dataset.setdefault(dataset, []).extend(without_value)
    return by_dataset, ColumnSplit(dataset, best.label, datasets)


class DisjointSets(Generic[T]):
    """A union-find structure: items that are joined are in the same set."""

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
        sets: dict[T, list[T]] = {}
        for item, representative in self._set_of.items():
            sets.setdefault(representative, []).append(item)
        return list(sets.values())


class _Split(NamedTuple):
    """A labelled position in paths whose values determine the columns, and the clusters.

    Files without the label get the path of the pattern. `clusters_like_unlabelled` have the same
    columns as the files without the label; None if all files have it.
    """

    label: str
    clusters: list[list[FileSet]]
    clusters_like_unlabelled: list[list[FileSet]] | None = None

    @property
    def is_key(self) -> bool:
        """Whether the value is that of a folder `key=value`."""
        return not self.label[:1].isdigit() and not self.is_in_name

    @property
    def is_in_name(self) -> bool:
        """Whether the value is part of file names."""
        return self.label.startswith((NAME_LABEL, DATED_NAME_LABEL))

    @property
    def rank(self) -> tuple[int, bool, bool, str]:
        """Sort key: most clusters first, then keys before folders before file names."""
        return -len(self.clusters), not self.is_key, self.is_in_name, self.label

    def is_named_by_pattern(self, position: int, cluster: list[FileSet]) -> bool:
        """Whether the cluster at this position gets the path of the pattern."""
        is_first = position == 0 and len(self.values(cluster)) > 1
        return is_first and (
            self.clusters_like_unlabelled is None or cluster in self.clusters_like_unlabelled
        )

    def values(self, file_sets: Iterable[FileSet]) -> list[str]:
        return sorted(
            {value for file_set in file_sets for value in file_set.path_values[self.label]}
        )


def _find_splits(
    file_sets: Sequence[FileSet], fields: Mapping[str, Fields], labels: Iterable[str]
) -> Iterator[_Split]:
    """Yield a split for each value of the paths that distinguishes sets of files.

    Files with the same value belong together, and so do files that share half of their fields. A
    set of files also joins another set whose fields contain its own, if neither is related to a
    third set in this way.
    """
    similar = (
        find_clusters(fields, min_share=_MIN_RELATED_SHARE) if len(set(fields.values())) > 1 else []
    )
    if len(similar) < 2:
        return
    contained = (
        [(left, right) for left, right in permutations(fields, 2) if fields[left] <= fields[right]]
        if len(fields) <= _MAX_CONTAINMENT_SCHEMAS
        else []
    )
    for label in labels:
        members = [file_set for file_set in file_sets if label in file_set.path_values]
        sets = DisjointSets(fields)
        first_with: dict[str, str] = {}
        for file_set in members:
            for value in file_set.path_values[label]:
                sets.join(
                    file_set.schema_fingerprint,
                    first_with.setdefault(value, file_set.schema_fingerprint),
                )
        for first, *others in similar:
            for other in others:
                sets.join(first, other)
        neighbours: dict[str, set[str]] = {}
        for left, right in contained:
            pair = {sets.find(left), sets.find(right)}
            if len(pair) == 2:
                for side in pair:
                    neighbours.setdefault(side, set()).update(pair - {side})
        for representative, neighbour_set in neighbours.items():
            other = next(iter(neighbour_set))
            if len(neighbour_set) == 1 and neighbours[other] == {representative}:
                sets.join(representative, other)
        clusters: dict[str, list[FileSet]] = {}
        for file_set in members:
            clusters.setdefault(sets.find(file_set.schema_fingerprint), []).append(file_set)
        other_sets = {
            sets.find(file_set.schema_fingerprint)
            for file_set in file_sets
            if label not in file_set.path_values
        }
        if len(clusters) > 1 or (other_sets and other_sets.isdisjoint(clusters)):
            clusters_like_unlabelled = [
                members for key, members in clusters.items() if key in other_sets
            ]
            yield _Split(
                label, list(clusters.values()), clusters_like_unlabelled if other_sets else None
            )


def _occurs_on_several_dates(label: str, file_sets: Sequence[FileSet]) -> bool:
    """Whether any value with this label occurs in files of several dates."""
    dated = {
        pair
        for file_set in file_sets
        for pair in file_set.path_values.get(f"{DATE_MARK}{label}", ())
    }
    return len({pair.partition(DATE_MARK)[0] for pair in dated}) < len(dated)


def _name_clusters(
    dataset: str,
    split: _Split,
    earlier_dataset_by_value: Mapping[str, str],
    fields: Mapping[str, Fields],
    fields_by_dataset: Mapping[str, Collection[Fields]],
) -> tuple[dict[str, list[FileSet]], dict[str, str]]:
    """The file sets of each dataset, and the dataset of each value.

    Values keep the dataset of an earlier scan; new values join the dataset with similar columns.
    In the first scan, the cluster with most values, if it has several, gets the path of the
    pattern; all others are named by their first value.
    """
    ranked = sorted(
        split.clusters,
        key=lambda members: (
            -len(split.values(members)),
            -sum(file_set.file_count for file_set in members),
        ),
    )
    clusters_by_dataset: dict[str, list[FileSet]] = {}
    datasets = dict(earlier_dataset_by_value)
    for position, members in enumerate(ranked):
        values = split.values(members)
        earlier = Counter(
            earlier_dataset_by_value[value] for value in values if value in earlier_dataset_by_value
        )
        related = _most_related(
            {fields[file_set.schema_fingerprint] for file_set in members}, fields_by_dataset
        )
        if earlier:
            path = earlier.most_common(1)[0][0]
        elif related is not None:
            path = related
        elif len(values) > MAX_PATH_VALUES or (
            not earlier_dataset_by_value and split.is_named_by_pattern(position, members)
        ):
            path = dataset
        else:
            name = f"{split.label}={values[0]}" if split.is_key else values[0]
            path = f"{dataset}/{name}"
        clusters_by_dataset.setdefault(path, []).extend(members)
        datasets |= {
            value: path
            for value in values[:MAX_PATH_VALUES]
            if value not in earlier_dataset_by_value
        }
    return clusters_by_dataset, datasets


def _most_related(
    fields: Collection[Fields], fields_by_dataset: Mapping[str, Collection[Fields]]
) -> str | None:
    """The dataset that has most fields in common with `fields`, if at least half are common."""
    shares = {
        path: max(
            len(left & right) / len(left | right) for left in fields for right in dataset_fields
        )
        for path, dataset_fields in fields_by_dataset.items()
        if dataset_fields
    }
    best = max(sorted(shares), key=lambda path: shares[path], default=None)
    return best if best is not None and shares[best] >= _MIN_RELATED_SHARE else None


def _candidates(all_fields: Sequence[Fields], min_share: float) -> Iterator[tuple[int, set[int]]]:
    """Yield each schema with the schemas that may have at least `min_share` of its fields.

    Comparing all pairs of thousands of schemas takes too long. If two schemas of ten fields have
    half of them in common, any six fields of one include a field of the other. So only schemas
    with one of the rarest fields of a schema are candidates.
    """
    counts = Counter(field for fields in all_fields for field in fields)
    with_field: dict[str, set[int]] = {field: set() for field in counts}
    for number, fields in enumerate(all_fields):
        for field in fields:
            with_field[field].add(number)
    for number, fields in enumerate(all_fields):
        rarest = sorted(fields, key=lambda field: (counts[field], field))
        lookup_fields = rarest[: len(fields) - ceil(min_share * len(fields)) + 1]
        yield number, set().union(*(with_field[field] for field in lookup_fields))


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


_MIN_FIELDS: Final = 2
_MIN_SIMILAR_SHARE: Final = 0.9
# A number after a word; a version such as `v1` is not a numbered word.
_NUMBERED: Final = re.compile(r"(.*[^\W\d_][\W_]*?)(?<!\d)\d+\Z")
_VERSION: Final = re.compile(r"(?:(?:\A|[\W_])[vV]|(?<=[a-z])V)\d+\Z")

# The path and the format of a dataset.
GroupKey = tuple[str, str]
Groups = Mapping[GroupKey, Sequence[FileSet]]


class JoinedGroups(NamedTuple):
    """Groups after similar groups were joined, and the member keys of each joined group."""

    groups: dict[GroupKey, list[FileSet]]
    members: dict[GroupKey, list[GroupKey]]


def join_similar(
    groups: Groups, fields: FieldsByFingerprint, before: GroupingState | None = None
) -> JoinedGroups:
    """Join datasets with nearly the same columns.

    Files of one folder become a dataset with the path of the folder. Numbered folders, such as
    `shop1` and `shop2`, become a dataset `shopNNN`.
    """
    joined = {key: list(file_sets) for key, file_sets in groups.items()}
    members: dict[GroupKey, list[GroupKey]] = {}
    earlier = _EarlierJoins(before or GroupingState())
    for family_of, path_of in (
        (folder_of_files, lambda paths: paths[0].rpartition("/")[0]),
        (_numbered_path, _common_numbered_path),
    ):
        families: dict[tuple[Hashable, str], list[GroupKey]] = {}
        for key, file_sets in joined.items():
            family = family_of(key[0], file_sets)
            if family is not None:
                families.setdefault((family, key[1]), []).append(key)
        for (_, format), family_keys in families.items():
            family_groups = {key: joined[key] for key in family_keys}
            for cluster in sorted(find_similar(family_groups, fields), key=len, reverse=True):
                file_sets = [file_set for key in sorted(cluster) for file_set in joined.pop(key)]
                path = path_of([key[0] for key in cluster])
                target = earlier.target((path, format), cluster, file_sets)
                # Of several clusters in one folder, only the first gets the path of the folder.
                if target in joined:
                    target = min(cluster)
                joined[target] = file_sets
                members[target] = [
                    each for key in sorted(cluster) for each in members.pop(key, [key])
                ]
    return JoinedGroups(joined, members)


def find_similar(groups: Groups, fields: FieldsByFingerprint) -> Iterator[list[GroupKey]]:
    """Find sets of groups with nearly the same columns; groups with a single column are ignored."""
    if len(groups) < 2:
        return
    fields_of_group: dict[GroupKey, Fields] = {}
    for key, file_sets in groups.items():
        all_fields = frozenset().union(
            *(
                fields[fingerprint]
                for fingerprint in {file_set.schema_fingerprint for file_set in file_sets}
            )
        )
        if len(all_fields) >= _MIN_FIELDS:
            fields_of_group[key] = all_fields
    yield from (
        members
        for members in find_clusters(fields_of_group, min_share=_MIN_SIMILAR_SHARE)
        if len(members) > 1
    )


class _EarlierJoins:
    """The datasets that the last scan joined, which keep their paths."""

    def __init__(self, before: GroupingState) -> None:
        file_sets = [each for each in before.file_sets if hinted_location(each.pattern) is None]
        self._dataset_of = {
            (each.base, each.pattern, each.format): each.dataset for each in file_sets
        }
        self._taken = {(each.dataset, each.format) for each in file_sets}
        self._members: dict[str, set[str]] = {}
        for each in file_sets:
            self._members.setdefault(each.dataset, set()).add(assign_file(each.first_path).dataset)

    def target(
        self, requested: GroupKey, cluster: Sequence[GroupKey], file_sets: Sequence[FileSet]
    ) -> GroupKey:
        """The earlier path of joined groups; else the requested path if free, or the first one."""
        earlier_datasets = Counter(
            self._dataset_of[file_set.key[:3]]
            for file_set in file_sets
            if file_set.key[:3] in self._dataset_of
        )
        for path, _ in earlier_datasets.most_common():
            key = (path, requested[1])
            if key == requested or (key in cluster and len(self._members[path]) > 1):
                return key
        return min(cluster) if requested in self._taken else requested


def folder_of_files(path: str, file_sets: Sequence[FileSet]) -> Hashable | None:
    """The folder of a dataset that is named after its files; None for other datasets."""
    folders = {f"{file_set.base}/{file_set.pattern}".rpartition("/")[0] for file_set in file_sets}
    is_plain = all(
        file_set.dataset == path and is_named_by_file(file_set.first_path) for file_set in file_sets
    )
    return (path.rpartition("/")[0], *folders) if is_plain and len(folders) == 1 else None


def _numbered_path(path: str, _file_sets: Sequence[FileSet]) -> Hashable | None:
    """The path with NNN for the numbers of its folders, if there are any."""
    folders = path.split("/")
    numbered = [_without_number(folder) for folder in folders]
    return "/".join(numbered) if numbered != folders else None


def _without_number(folder: str) -> str:
    match = None if _VERSION.search(folder) else _NUMBERED.match(folder)
    return folder if match is None else f"{match[1]}NNN"


def _common_numbered_path(paths: Sequence[str]) -> str:
    """The path of numbered folders, with NNN where their numbers differ."""
    folder_names = zip(*(path.split("/") for path in paths), strict=True)
    return "/".join(
        names[0] if len(set(names)) == 1 else _without_number(names[0]) for names in folder_names
    )
