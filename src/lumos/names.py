"""Finds datasets, columns and fields by the names that users enter.

A dataset is found by its URN, or by its name or the end of its path if that is unique. A column is
written as `dataset.column`. For an unknown name, the error lists the nearest names.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from shlex import quote
from typing import Final, NamedTuple

from lumos.errors import MisuseError, did_you_mean
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.schema import Schema
from lumos.model.type_path import field_paths
from lumos.model.types import quoted_name
from lumos.model.urn import SCHEME
from lumos.store import DatasetFilter, KnownDataset, Store
from lumos.store.errors import AmbiguousName, OnlyInLineage, UnknownDataset

_NESTING_MARKS: Final = ("[]", "{}", "{key}")
_MAX_SUGGESTED: Final = 3


class NoMatchingDataset(MisuseError):
    """A pattern that no dataset matches."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"No dataset matches '{pattern}'. See them all with: lumos list")


class UnknownField(MisuseError):
    """A field that a dataset does not have."""

    def __init__(self, field: str, owner: str, known: Iterable[str]) -> None:
        self.field = field
        dataset = owner.strip("'")
        show = "list" if DatasetPattern(dataset).has_wildcards else f"show {quote(dataset)}"
        advice = f" See its fields with: lumos {show}"
        suggestion = did_you_mean(field, known, limit=_MAX_SUGGESTED)
        super().__init__(f"No field '{field}' in {owner}.{suggestion or advice}")


class ColumnName(NamedTuple):
    """A column of a dataset, or the whole dataset if `column` is None."""

    urn: str
    column: str | None


def find_dataset(store: Store, text: str) -> KnownDataset:
    """Find a dataset by URN, name or end of its path; it may be deleted.

    Raises UnknownDataset, with the nearest names, or AmbiguousName.
    """
    try:
        return store.find_record(_require_name(text))
    except UnknownDataset:
        urns = (text,) if text.startswith(SCHEME) else store.lineage.find_by_name(text)
        if len(urns) == 1 and has_lineage(store, urns[0]):
            raise OnlyInLineage(text, urns[0]) from None
        raise


def find_urn(store: Store, text: str, *, with_lineage: bool = False) -> str:
    """Find the URN of a dataset; `with_lineage` also finds datasets known only from lineage."""
    if not with_lineage:
        return find_dataset(store, text).urn
    try:
        urn = store.find(_require_name(text))
    except UnknownDataset:
        urns = () if text.startswith(SCHEME) else store.lineage.find_by_name(text)
        if len(urns) > 1:
            raise AmbiguousName(text, urns) from None
        if not urns:
            raise
        return urns[0]
    if store.find_known(urn) is None and not has_lineage(store, urn):
        raise store.unknown(text)
    return urn


def has_lineage(store: Store, urn: str) -> bool:
    """Whether any lineage edge leads into or out of a dataset."""
    return bool(
        store.lineage.edges_of(urn, "upstream") or store.lineage.edges_of(urn, "downstream")
    )


def find_column(store: Store, text: str, *, with_lineage: bool = False) -> ColumnName:
    """Find the column that `orders.customer_id` refers to, or the dataset for `orders`.

    Names of datasets may contain dots, so the longest matching name is used.
    """
    name, column = text, None
    errors: list[UnknownDataset] = []
    while True:
        try:
            return ColumnName(find_urn(store, name, with_lineage=with_lineage), column)
        except UnknownDataset as unknown:
            errors.append(unknown)
        name, _, last = name.rpartition(".")
        if not name or name.endswith("/"):
            # For a typo such as `ordres.amount`, only `ordres` may be similar to a known name.
            raise next((each for each in errors if each.nearest), errors[0])
        column = last if column is None else f"{last}.{column}"


def split_field(store: Store, text: str) -> tuple[str, tuple[str, ...]]:
    """Split `orders.amount` into the dataset and its field; return other texts unchanged."""
    if "." not in text or DatasetPattern(text).has_wildcards:
        return text, ()
    try:
        column_name = find_column(store, text)
    except MisuseError:
        return text, ()
    return (text, ()) if column_name.column is None else (column_name.urn, (column_name.column,))


def find_datasets(store: Store, text: str) -> list[KnownDataset]:
    """Find the live datasets that match a name or a pattern; raises if there are none."""
    pattern = DatasetPattern(text)
    if pattern.has_wildcards:
        matching = find_matching(store, pattern)
        if not matching:
            raise NoMatchingDataset(text)
        return matching
    dataset = find_dataset(store, text)
    if dataset.state != "live":
        raise MisuseError(f"{dataset.urn} {dataset.absence}")
    return [dataset]


def find_matching(store: Store, pattern: DatasetPattern) -> list[KnownDataset]:
    all_datasets = store.list(DatasetFilter())
    return [each for each in all_datasets if pattern.matches(each.urn, each.name)]


def is_dataset(store: Store, text: str) -> bool:
    """Whether a name or a pattern matches at least one live dataset."""
    try:
        return bool(find_datasets(store, text))
    except AmbiguousName:
        return True
    except MisuseError:
        return False


def _require_name(text: str) -> str:
    if not text.strip():
        raise MisuseError("The name of a dataset is empty. See them all with: lumos list")
    return text


def find_fields(schema: Schema | None, names: Sequence[str]) -> list[str]:
    """Find the paths of the named fields in a schema; unknown names are ignored."""
    return match_paths(names, [] if schema is None else field_paths(schema))


def match_paths(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Select the field paths that match the names, each once."""
    return list(dict.fromkeys(path for name in names for path in _matching_paths(name, paths)))


def unknown_field_error(
    names: Sequence[str], owner: str, schemas: Iterable[Schema]
) -> UnknownField:
    """The error for the first name that is not a field of any of the schemas."""
    paths = list(dict.fromkeys(path for schema in schemas for path in field_paths(schema)))
    unknown = next((name for name in names if not _matching_paths(name, paths)), names[0])
    return UnknownField(unknown, owner, paths)


def _matching_paths(name: str, paths: Sequence[str]) -> list[str]:
    """The paths that match a name exactly, quoted, as a glob, without nesting marks or case."""
    if not name:
        return []
    for candidate in (name, quoted_name(name)):
        if candidate in paths:
            return [candidate]
    if any(sign in name for sign in "*?"):
        return [path for path in paths if fnmatchcase(path, name)]
    same_without_marks = [path for path in paths if _without_marks(path) == _without_marks(name)]
    if same_without_marks:
        return same_without_marks[:1]
    folded = _without_marks(name).casefold()
    same_ignoring_case = [path for path in paths if _without_marks(path).casefold() == folded]
    return same_ignoring_case if len(same_ignoring_case) == 1 else []


def _without_marks(path: str) -> str:
    """Remove nesting marks: `items.price` for `items[].price`."""
    for mark in _NESTING_MARKS:
        path = path.replace(mark, "")
    return path
