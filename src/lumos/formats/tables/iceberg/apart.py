"""Metadata that lies in a folder of its own (`write.metadata.path`), away from its table."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.iceberg.current import METADATA, Current, current, number_of
from lumos.formats.tables.iceberg.metadata import Metadata, parsed
from lumos.formats.tables.interface import Folder

_METADATA_PATH: Final = "write.metadata.path"


class Home(NamedTuple):
    """Where a table lies, and where its metadata is to be put, as it spells them."""

    location: str
    metadata: str


def metadata_path(metadata: Metadata) -> str:
    """Where writers were told to put metadata; nothing where they were told nothing."""
    path = (metadata.properties or {}).get(_METADATA_PATH)
    return path.rstrip("/") if isinstance(path, str) else ""


def location_elsewhere(folder: Folder, metadata: Metadata) -> str:
    """Where a table lies that has nothing but its metadata in a folder; else nothing."""
    told, location = metadata_path(metadata), metadata.location.rstrip("/")
    if not told or folder.inside(f"{told}/x", "") != f"{METADATA}/x":
        return ""
    return location if folder.inside(f"{location}/x", "") is None else ""


def home_of(folder: Folder) -> Home:
    """The home of the table whose metadata lies in a folder; raises UnreadableFile."""
    newest = current(folder)
    told = metadata_path(newest.metadata)
    if not told or not newest.metadata.location:
        raise _no_home("its table does not say that it belongs there")
    if any(_is_of_another(folder, name, newest.metadata) for name in set(_doubtful(newest))):
        raise _no_home("it is of several tables, and only a catalog knows which file is whose")
    return Home(newest.metadata.location, told)


def _no_home(reason: str) -> UnreadableFile:
    return UnreadableFile(
        "stray_metadata",
        f"Metadata of Iceberg lies here, though not in a folder called {METADATA}, and {reason}; "
        "no table is read, and its files are taken for loose ones",
    )


def _doubtful(newest: Current) -> Iterator[str]:
    """The files that would show another table, were there one in the same folder."""
    numbers = {name: number for name in newest.sizes if (number := number_of(name)) is not None}
    log = newest.metadata.metadata_log or ()
    own = {newest.name, *(entry.metadata_file.rpartition("/")[2] for entry in log)}
    others = numbers.keys() - own
    if others:
        yield max(others, key=lambda name: (numbers[name], name))
    yield from _of_one_number(numbers)


def _of_one_number(numbers: Mapping[str, int]) -> list[str]:
    """Files of the highest number that several have: each table counts for itself."""
    counts = Counter(numbers.values())
    twice = max((number for number, count in counts.items() if count > 1), default=None)
    return [name for name, number in numbers.items() if number == twice]


def _is_of_another(folder: Folder, name: str, metadata: Metadata) -> bool:
    try:
        other = parsed(name, folder.read(f"{METADATA}/{name}"))
    except (UnreadableFile, FileNotFoundError):
        # It counts no more, so that its damage is nobody's trouble.
        return False
    return other.table_uuid != metadata.table_uuid
