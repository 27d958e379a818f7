"""Lakes as text: which files there are, what they hold, and which of them a person calls one dataset.

A lake is a table of lines `dataset | format | columns | paths`. Lines of one dataset belong
together, `-` stands for files that belong to none. In a path, `{01..03}` counts, `{a,b}` chooses,
and `{uuid}`, `{hex8}`, `{rand16}`, `{digits12}` and `{time}` are filled anew for each of the files that
`5x` in front of a path asks for.
"""

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lumos.discovery.grouping.datasets import GroupingResult, group_files
from lumos.discovery.grouping.hints import HintMatcher
from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.lake.summaries import FileRow, summarise
from lumos.model.schema import Field, Schema
from lumos.model.types import DATE, FLOAT64, INT64, STRING, Timestamp
from lumos.storage import FileHint

ROOT = "/lake"
_TYPES = {"int": INT64, "float": FLOAT64, "date": DATE, "time": Timestamp("us"), "str": STRING}
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANDOM = re.compile(r"(uuid|hex|rand|digits|upper|time|date)(\d*)\Z")


class LakeFile(NamedTuple):
    path: str
    dataset: str
    format: str | None
    schema: Schema


class Lake(NamedTuple):
    """A named lake and its table of lines; `hint` is the pattern and name of a hint for it."""

    name: str
    table: str
    hint: tuple[str, str] | None = None

    def files(self) -> list[LakeFile]:
        """Every file of the lake."""
        chance = random.Random(self.name)
        found: list[LakeFile] = []
        for line in filter(None, map(str.strip, self.table.splitlines())):
            dataset, format, columns, paths = (part.strip() for part in line.split("|"))
            schema = schema_of(columns)
            for path in paths.split(";"):
                found += (
                    LakeFile(f"{ROOT}/{each}", dataset, None if format == "-" else format, schema)
                    for each in expanded(path.strip(), chance)
                )
        return found

    def expected(self) -> set[frozenset[str]]:
        """The sets of files that are datasets."""
        sets: dict[tuple[str, str | None], set[str]] = {}
        for file in self.files():
            if file.dataset != "-":
                sets.setdefault((file.dataset, file.format), set()).add(file.path)
        return set(map(frozenset, sets.values()))


class Score(NamedTuple):
    """How many datasets were expected, found, and both."""

    expected: int
    found: int
    right: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (self.expected + self.found)


def schema_of(columns: str) -> Schema:
    """`id:int name` as a schema; a column without a type is text."""
    fields = []
    for column in columns.split():
        name, _, kind = column.partition(":")
        fields.append(Field(name=name, type=_TYPES[kind or "str"]))
    return Schema(fields=tuple(fields))


def grouped(
    lake: Lake,
    *,
    reverse: bool = False,
    before: GroupingState | None = None,
    hints: Sequence[FileHint] = (),
    join_similar: bool = False,
) -> GroupingResult:
    """What the rules make of a lake."""
    files = [file for file in lake.files() if file.format is not None]
    if reverse:
        files.reverse()
    schemas = {file.schema.full: file.schema for file in files}
    rows = [FileRow(file.path, 10, 0, "", file.format, file.schema.full) for file in files]
    splits = () if before is None else before.splits
    places = summarise(rows, root=ROOT, hints=hints, splits=splits).file_sets
    placing = HintMatcher(hints, root=ROOT, splits=splits)
    return group_files(places, schemas, hints=placing, before=before, joins_similar=join_similar)


def found_sets(
    lake: Lake, result: GroupingResult, hints: Sequence[FileHint] = ()
) -> set[frozenset[str]]:
    """The sets of files that were grouped together."""
    dataset_of = {
        (each.base, each.pattern, each.format, each.schema_fingerprint): group.dataset
        for group in result.groups
        for each in group.file_sets
    }
    placing = HintMatcher(hints, root=ROOT)
    sets: dict[str, set[str]] = {}
    for file in lake.files():
        assignment = placing.assign(file.path)
        key = (assignment.base, assignment.pattern, file.format, file.schema.full)
        if key in dataset_of:
            sets.setdefault(dataset_of[key], set()).add(file.path)
    return set(map(frozenset, sets.values()))


def score(lakes: Sequence[Lake]) -> Score:
    """The sum over some lakes."""
    expected = found = right = 0
    for lake in lakes:
        wanted, got = lake.expected(), found_sets(lake, grouped(lake))
        expected += len(wanted)
        found += len(got)
        right += len(wanted & got)
    return Score(expected, found, right)


def expanded(path: str, chance: random.Random) -> Iterator[str]:
    """All paths that a path with braces stands for."""
    times, _, rest = path.partition("x ")
    count, text = (int(times), rest) if times.isdigit() else (1, path)
    for _ in range(count):
        yield from _expanded(text, chance)


def _expanded(text: str, chance: random.Random) -> Iterator[str]:
    pieces = _BRACES.split(text)
    choices: list[list[str]] = []
    for index, piece in enumerate(pieces):
        choices.append([piece] if index % 2 == 0 else _choices(piece))
    for chosen in itertools.product(*choices):
        yield "".join(
            _filled(piece, chance) if index % 2 else piece for index, piece in enumerate(chosen)
        )


def _choices(piece: str) -> list[str]:
    first, dots, last = piece.partition("..")
    if dots:
        return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return piece.split(",")


def _filled(piece: str, chance: random.Random) -> str:
    match = _RANDOM.match(piece)
    if match is None:
        return piece
    kind, length = match[1], int(match[2] or 0)
    letters = {
        "hex": "0123456789abcdef",
        "digits": "123456789",
        "upper": "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789",
        "rand": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    }
    if kind == "uuid":
        digits = "".join(chance.choices(letters["hex"], k=32))
        return "-".join(
            digits[start:end] for start, end in itertools.pairwise((0, 8, 12, 16, 20, 32))
        )
    day = f"2024{chance.randint(1, 12):02d}{chance.randint(1, 28):02d}"
    if kind == "date":
        return day
    if kind == "time":
        return f"{day}T{chance.randint(0, 23):02d}{chance.randint(0, 59):02d}Z"
    return "".join(chance.choices(letters[kind], k=length))
