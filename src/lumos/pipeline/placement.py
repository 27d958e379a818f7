"""Where a file belongs, as far as its path alone says: folder, partition values, name pattern."""

import re
from typing import Final, NamedTuple

_HIVE: Final = re.compile(r"([^=/]+)=(.*)\Z", re.DOTALL)
_YEAR: Final = re.compile(r"(19|20)\d{2}\Z", re.ASCII)
_TWO_DIGITS: Final = re.compile(r"\d{1,2}\Z", re.ASCII)
_DAY: Final = re.compile(r"(19|20)\d{2}-?\d{2}(-?\d{2})?\Z", re.ASCII)
_WRITERS_PART: Final = re.compile(
    r"(part[-_]?\d+.*|\d+(_\d+)*|[0-9a-f]{8}-[0-9a-f]{4}-.*|data|output|export|file|chunk)\Z",
    re.ASCII | re.IGNORECASE,
)
_SEQUENCE: Final = re.compile(
    r"[-_.]?((19|20)\d{2}-?\d{2}(-?\d{2}([T_-]?\d{2,6})?)?|\d+)\Z", re.ASCII
)
_EXTENSION: Final = re.compile(
    r"((\.(snappy|gz|gzip|zst|zstd|bz2|lz4|zlib))?\.[A-Za-z0-9]{1,8})+\Z"
)


class Placement(NamedTuple):
    """A file's place: the folder above its partitions, their values, and its name's pattern.

    The pattern is empty for files that only a writer named (part files, sequence numbers): such
    a folder is one dataset. A trailing `*` marks a name that ended in a date or a number.
    """

    base: str
    pattern: str
    partitions: tuple[tuple[str, str], ...]


def place(path: str, root: str) -> Placement:
    """The placement of a file below a root."""
    if path == root:
        # A file that is scanned by itself says nothing about the others in its folder.
        folder, _, name = path.rpartition("/")
        return Placement(folder, name, ())
    inside = path[len(root) :].lstrip("/")
    folders, name = inside.split("/")[:-1], path.rpartition("/")[2]
    kept = len(folders) - _trailing_partitions(folders)
    base = "/".join([root.rstrip("/"), *folders[:kept]])
    values = tuple(
        (match.group(1), match.group(2))
        for folder in folders[kept:]
        if (match := _HIVE.match(folder))
    )
    is_partitioned = kept < len(folders)
    return Placement(base, "" if is_partitioned else _pattern(name, base), values)


def _trailing_partitions(folders: list[str]) -> int:
    """How many of the last folders hold partition values or dates."""
    count = 0
    for folder in reversed(folders):
        if not (_HIVE.match(folder) or _DAY.match(folder) or _TWO_DIGITS.match(folder)
                or _YEAR.match(folder)):  # fmt: skip
            break
        count += 1
    # `07/part-0.csv` below no year is a folder with a short name, not a month.
    while count and _TWO_DIGITS.match(folders[-count]):
        count -= 1
    return count


def _pattern(name: str, base: str) -> str:
    extension = _EXTENSION.search(name)
    stem = name[: extension.start()] if extension else name
    if _WRITERS_PART.match(stem) or stem.casefold() == base.rpartition("/")[2].casefold():
        return ""
    without = _SEQUENCE.sub("", stem)
    if not without:
        return ""
    return without + ("*" if without != stem else "") + (extension.group() if extension else "")
