"""Finds a file's format: by its first bytes if they say, else by its name."""

from typing import Final

from lumos.formats.csv import Csv
from lumos.formats.interface import FileFacts, Format, RangedBytes, UnreadableFile
from lumos.formats.parquet import Parquet

FORMATS: Final[dict[str, Format]] = {format.name: format for format in (Parquet(), Csv())}

_HEAD: Final = 16


def identify(name: str, head: bytes) -> Format | None:
    """The format of a file with that name and beginning, or nothing if it is no data file."""
    for format in FORMATS.values():
        if format.claims(head):
            return format
    lowered = name.lower()
    for format in FORMATS.values():
        if lowered.endswith(format.suffixes):
            return format
    return None


def read_file(name: str, file: RangedBytes) -> tuple[Format, FileFacts] | None:
    """A data file's format and facts, nothing for other files; raises UnreadableFile."""
    format = identify(name, file.head(_HEAD))
    if format is None:
        return None
    if file.size == 0:
        raise UnreadableFile("empty_file", "The file has no bytes.")
    return format, format.read(file)
