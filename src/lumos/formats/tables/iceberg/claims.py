"""What lies outside a table's root and is its own all the same."""

from collections.abc import Iterator, Sequence
from typing import Final

from lumos.formats.tables.iceberg.manifests import Part
from lumos.formats.tables.iceberg.metadata import Metadata

# Where writers were told to put data files.
_DATA_PATHS: Final = (
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_MOST_FILES: Final = 10_000


def claimed(parts: Sequence[Part], metadata: Metadata, root: str) -> tuple[str, ...]:
    """Addresses of folders and files, as the table spells them.

    The folder that writers were told to use is the table's as a whole. Of others it took files
    over, beside which there may be files of other datasets: those are named one by one, and only
    where they are very many by their folders.
    """
    told = (metadata.properties or {}).get
    paths = [path.rstrip("/") for name in _DATA_PATHS if isinstance(path := told(name), str)]
    met = {folder for part in parts for folder in part.outside}
    own = {path for path in paths if any(is_below(folder, path) for folder in met)}
    others = {folder for folder in met if not any(is_below(folder, path) for path in own)}
    files = set()
    for file in _outside(parts, others):
        files.add(file)
        if len(files) > _MOST_FILES:
            return _widest(own | others, root)
    return _widest(own | files, root)


def _outside(parts: Sequence[Part], folders: set[str]) -> Iterator[str]:
    for part in parts:
        if folders.intersection(part.outside):
            for row in part.live():
                if row.is_outside and any(is_below(row.path, folder) for folder in folders):
                    yield row.path


def _widest(places: set[str], root: str) -> tuple[str, ...]:
    """Without those inside others, and without one that holds the table and other datasets."""
    widest: dict[str, str] = {}
    for place in sorted(places, key=lambda each: (len(each), each)):
        if not is_below(root, place) and not any(above in widest for above in _ways(place)):
            widest[_bare(place)] = place
    return tuple(sorted(widest.values()))


def _ways(place: str) -> Iterator[str]:
    """The place itself and all folders that it lies in."""
    bare = _bare(place)
    while bare:
        yield bare
        bare = bare.rpartition("/")[0]


def is_below(place: str, other: str) -> bool:
    """Whether a place is the other one or lies in it."""
    return f"{_bare(place)}/".startswith(f"{_bare(other)}/")


def _bare(address: str) -> str:
    """Without its scheme, of which one store has several."""
    return address.partition("://")[2] or address.removeprefix("file:")
