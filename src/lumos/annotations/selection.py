"""Which datasets and fields a person's words mean."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from lumos.annotations.rules import paths_of
from lumos.errors import MisuseError, did_you_mean
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.schema import Schema
from lumos.model.types import quoted_name
from lumos.store import DatasetFilter, KnownDataset, Store
from lumos.store.errors import AmbiguousName

_MARKS: Final = ("[]", "{}", "{key}")
_FEW: Final = 3


class NothingMatches(MisuseError):
    """A pattern that no dataset fits."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"No dataset matches '{pattern}'. See them all with: lumos list")


class UnknownField(MisuseError):
    """A field that a dataset does not have."""

    def __init__(self, field: str, owner: str, known: Iterable[str]) -> None:
        self.field = field
        question = did_you_mean(field, known, limit=_FEW)
        super().__init__(f"No field '{field}' in {owner}.{question}")


def chosen(store: Store, text: str) -> list[KnownDataset]:
    """The live datasets that a URN, a name or a pattern means; fails where there are none."""
    pattern = DatasetPattern(text)
    if pattern.is_open:
        found = matching(store, pattern)
        if not found:
            raise NothingMatches(text)
        return found
    known = store.ledger.known(found_urn(store, text))
    if known.state != "live":
        raise MisuseError(f"{known.urn} {known.absence}")
    return [known]


def is_dataset(store: Store, text: str) -> bool:
    """Whether a URN, a name or a pattern means a live dataset, or several."""
    try:
        return bool(chosen(store, text))
    except AmbiguousName:
        return True
    except MisuseError:
        return False


def matching(store: Store, pattern: DatasetPattern) -> list[KnownDataset]:
    """The live datasets that fit a pattern."""
    everything = store.list(DatasetFilter())
    return [each for each in everything if pattern.matches(each.urn, each.name)]


def found_urn(store: Store, name: str) -> str:
    """The URN that a name means; a wrong one is told with the nearest there are."""
    urn = store.find(name)
    store.ledger.known(urn)
    return urn


def fields_in(schema: Schema | None, wanted: Sequence[str]) -> list[str]:
    """The paths of the fields that some names mean in a schema; those it has not are left out."""
    return meant(wanted, [] if schema is None else paths_of(schema))


def meant(wanted: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Those of some paths that names mean."""
    return list(dict.fromkeys(path for name in wanted for path in _meant(name, paths)))


def unknown_field(wanted: Sequence[str], owner: str, schemas: Iterable[Schema]) -> UnknownField:
    """The error that tells which field nobody has."""
    paths = list(dict.fromkeys(path for schema in schemas for path in paths_of(schema)))
    lost = next((name for name in wanted if not _meant(name, paths)), wanted[0])
    return UnknownField(lost, owner, paths)


def _meant(name: str, paths: Sequence[str]) -> list[str]:
    """A path as it is, a column with an odd name, a path without marks, in any case, or a glob."""
    if not name:
        return []
    for candidate in (name, quoted_name(name)):
        if candidate in paths:
            return [candidate]
    if any(sign in name for sign in "*?"):
        return [path for path in paths if fnmatchcase(path, name)]
    plain = [path for path in paths if _plain(path) == _plain(name)]
    if plain:
        return plain[:1]
    folded = [path for path in paths if _plain(path).casefold() == _plain(name).casefold()]
    return folded if len(folded) == 1 else []


def _plain(path: str) -> str:
    """`items.price` for items[].price, as people say it."""
    for mark in _MARKS:
        path = path.replace(mark, "")
    return path
