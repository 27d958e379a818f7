"""What datasets are called and where they lie, as a person would say it."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Final, NamedTuple

from lumos.pipeline.grouping.units import (
    HIVE,
    PLACEHOLDER,
    Unit,
    fixed_part,
    has_values,
    without_values,
)
from lumos.pipeline.grouping.words import is_noise, is_value, tokens_of
from lumos.pipeline.placement import ANY_NAME, BRACES, split_name
from lumos.pipeline.variables import TIMES

# Where one folder holds the same dataset name in two formats, the first keeps the folder's name.
_FORMAT_RANK: Final = ("parquet", "avro", "orc", "csv", "json")
_BRACE: Final = re.compile(r"\{(open|close)\}")
_STARS: Final = re.compile(r"\*[*?]*")
_SEPARATORS: Final = re.compile(r"([\W_]+)")
_SPECIAL: Final = re.compile(r"[*?\[]")
_NUMBERS: Final = dict.fromkeys((*TIMES, "n"), "[0-9]*")


class Name(NamedTuple):
    """A dataset's path, which is its identity, and its location: a folder or a file pattern."""

    path: str
    location: str


def names_of(
    units: Sequence[Unit], *, top: str, taken: Collection[str] = (), tables: Collection[str] = ()
) -> list[Name]:
    """A name for every unit, all different and none of those taken, or of a table."""
    in_folder = Counter((unit.folders, unit.format) for unit in units)
    is_folder = [
        _is_named_by_folder(unit, alone=in_folder[unit.folders, unit.format] == 1) for unit in units
    ]
    neighbours = _Neighbours(units, top)
    used = {*taken, *tables}
    names: dict[int, Name] = {}
    for index in sorted(range(len(units)), key=lambda each: _rank(units[each])):
        unit, place = units[index], _place(units[index], top)
        file = [] if is_folder[index] else [_file_name(unit)]
        path = "/".join([top, *map(literal, unit.address), *file])
        is_second = path in used
        if is_second:
            beside = "/".join([top, *map(_glob, unit.folders)]) if path in tables else path
            path = beside if beside not in used else _other_path(path, unit, used)
        used.add(path)
        names[index] = Name(path, _location(unit, place, neighbours, is_folder[index]))
        if is_second and is_folder[index]:
            names[index] = Name(path, f"{place}/*.{unit.format}")
    return [names[index] for index in range(len(units))]


def literal(text: str) -> str:
    """A text with the braces that are braces."""
    return _BRACE.sub(lambda match: BRACES[match[1]], text)


class _Neighbours:
    """Finds the units that lie in a place or below it."""

    def __init__(self, units: Iterable[Unit], top: str) -> None:
        self._places = sorted(
            ((_place(unit, top), unit) for unit in units), key=lambda each: each[0]
        )
        self._sorted = [place for place, _ in self._places]

    def of(self, unit: Unit, place: str) -> list[Unit]:
        """All units in or below a place but one."""
        start = bisect_left(self._sorted, place)
        near = takewhile(lambda each: each[0].startswith(place), self._places[start:])
        return [
            other
            for below, other in near
            if other is not unit and (below == place or below.startswith(f"{place}/"))
        ]


def _is_named_by_folder(unit: Unit, *, alone: bool) -> bool:
    """Whether the folder says what the files are, rather than their names."""
    tokens = tokens_of(PLACEHOLDER.sub(" ", unit.stem))
    if not unit.title:
        # A writer's word tells files apart where it is all there is: 2024.export, 2024.mentions.
        return alone or not tokens or not all(map(is_noise, tokens)) or not has_values(unit.stem)
    if ANY_NAME in unit.stem and all(map(is_value, tokens)):
        return True
    below = unit.folders[-1] if unit.folders and not fixed_part(unit.folders[-1]) else ""
    if not alone or not below or not unit.address:
        return False
    return below.endswith(HIVE) or has_values(unit.stem)


def _file_name(unit: Unit) -> str:
    if not has_values(unit.stem):
        first = unit.rows[0].place.first_path.rpartition("/")[2]
        return first if unit.files == 1 else literal(unit.stem) + unit.ending
    pieces = _SEPARATORS.split(literal(without_values(unit.stem)))
    kept = [piece for index, piece in enumerate(pieces) if index % 2 or not is_noise(piece.lower())]
    return ("".join(kept).strip(" -_.+#()[]") or "_".join(pieces[::2])) + unit.ending


def rank_of(format: str) -> int:
    """Which of several formats has a folder's name: the first."""
    return _FORMAT_RANK.index(format) if format in _FORMAT_RANK else len(_FORMAT_RANK)


def _rank(unit: Unit) -> tuple[int, int, str]:
    return rank_of(unit.format), -unit.files, unit.rows[0].place.first_path


def _other_path(path: str, unit: Unit, used: set[str]) -> str:
    """A path for a dataset whose own is taken: by its format, its folders, or its first file."""
    first = min(row.place.first_path for row in unit.rows)
    deeper = "/".join([path, *map(_glob, unit.folders[len(unit.address) :])])
    choices = (f"{path}/*.{unit.format}", deeper, first, f"{first}.{unit.format}")
    return next((each for each in choices if each not in used), f"{path}/{len(used)}")


def _place(unit: Unit, top: str) -> str:
    """The folder down to which names are fixed; values in between are stars."""
    return "/".join([top, *map(_glob, unit.folders[: _depth(unit)])])


def _depth(unit: Unit) -> int:
    fixed = [index for index, folder in enumerate(unit.folders) if fixed_part(folder)]
    return fixed[-1] + 1 if fixed else 0


def _location(unit: Unit, place: str, neighbours: "_Neighbours", is_folder: bool) -> str:
    if is_folder:
        return place
    if unit.files == 1 and not has_values(unit.stem):
        return unit.rows[0].place.first_path
    near = neighbours.of(unit, place)
    if not near:
        return place
    own = list(_examples(unit))
    others = [path for each in near for path in _examples(each)]
    fitting = [glob for glob in _patterns(unit, place) if all(_fits(glob, path) for path in own)]
    exact = (glob for glob in fitting if not any(_fits(glob, path) for path in others))
    return next(exact, fitting[0] if fitting else place)


def _examples(unit: Unit) -> Iterator[str]:
    for row in unit.rows:
        yield row.place.first_path
        yield row.place.last_path


def _patterns(unit: Unit, place: str) -> Iterator[str]:
    """File patterns for a unit, the simplest first."""
    below = unit.folders[_depth(unit) :]
    endings = {split_name(path.rpartition("/")[2])[1] for path in _examples(unit)}
    ending = endings.pop() if len(endings) == 1 else f"{unit.ending}*"
    for kinds in ({}, _NUMBERS):
        file = _STARS.sub("*", _glob(unit.stem, kinds) + ending)
        yield "/".join([place, *map(_glob, below), file])
    start = literal(PLACEHOLDER.split(unit.stem)[0])
    yield "/".join([place, *map(_glob, below), f"{start}*"])


def _fits(glob: str, path: str) -> bool:
    wanted, names = glob.split("/"), path.split("/")
    return len(wanted) == len(names) and all(map(_name_fits, names, wanted))


def _name_fits(name: str, glob: str) -> bool:
    return name == glob or (_SPECIAL.search(glob) is not None and fnmatchcase(name, glob))


def _glob(text: str, kinds: dict[str, str] | None = None) -> str:
    glob = PLACEHOLDER.sub(lambda match: (kinds or {}).get(match[1], "*"), text)
    return literal(_STARS.sub("*", glob))
