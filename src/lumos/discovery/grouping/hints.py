"""Assigns files to datasets by hints, by earlier splits, and otherwise by their paths."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, takewhile
from typing import Final, NamedTuple

from lumos.discovery.grouping.patterns import Placement, place_file, split_name
from lumos.storage import FileHint

# Increment this when the same paths are grouped differently, so that summaries are not reused.
_PATTERN_VERSION: Final = 2

# The prefix of patterns that a hint assigned; the hint's number and a location follow.
_MARK: Final = "{hint}"
# In patterns that an earlier split by columns assigned; the dataset follows.
SPLIT_MARK: Final = "{split}"
_PATTERN_TOKEN: Final = re.compile(r"\*\*|\*|\?|\{(\w+)\}|[^*?{]+")
_WILD: Final = re.compile(r"[*?{]")
_AROUND_STARS: Final = re.compile(r"[\W_]*[*?]+[\W_]*")


class ColumnSplit(NamedTuple):
    """Files of one path pattern that an earlier scan split into different datasets.

    `label` is the position of the value that distinguishes them (see `Placement.path_values`), and
    `datasets` holds the dataset of each value.
    """

    dataset: str
    label: str
    datasets: dict[str, str]

    @property
    def named_datasets(self) -> set[str]:
        """The datasets that are named by a value."""
        return set(self.datasets.values()) - {self.dataset}


class HintMatcher:
    """Assigns the files of one root to datasets: by hints, by earlier splits, by their paths."""

    def __init__(
        self, hints: Sequence[FileHint], *, root: str, splits: Sequence[ColumnSplit] = ()
    ) -> None:
        self.root = root
        self._patterns = [
            _Pattern.of(path, hint, number, root)
            for number, hint in enumerate(hints)
            for path in hint.paths
        ]
        self._splits = {split.dataset: split for split in splits}
        text = "\n".join(
            (
                str(_PATTERN_VERSION),
                *("\n".join((*hint.paths, str(hint.name), str(hint.split))) for hint in hints),
                *(
                    f"{each.dataset}\n{each.label}\n{sorted(each.datasets.items())}"
                    for each in splits
                ),
            )
        )
        # Stored with every summary, so that one made with other hints is not reused.
        self.fingerprint = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def place(self, path: str) -> Placement:
        """Place a file by the first hint that matches, by an earlier split, or by its path."""
        placement = place_file(path)
        for each in self._patterns:
            match = each.files.match(path)
            if match is not None:
                dataset, location = each.dataset(path, match)
                pattern = f"{_MARK}{each.number} {location}"
                return Placement(dataset, pattern, dataset, placement.partitions)
        split = self._splits.get(placement.dataset) if self._splits else None
        if split is not None:
            value = dict(placement.path_values).get(split.label, "")
            dataset = split.datasets.get(value, placement.dataset)
            # A pattern of its own, so that equal schemas on both sides are summarised separately.
            pattern = f"{placement.pattern}{SPLIT_MARK}{dataset}"
            return placement._replace(pattern=pattern, dataset=dataset)
        return placement

    def matching(self, path: str) -> list[int]:
        """The numbers of all hints that match a file; the first one is used."""
        numbers = (each.number for each in self._patterns if each.files.match(path) is not None)
        return list(dict.fromkeys(numbers))


def prefixes_of(hint: FileHint, root: str) -> list[str]:
    """Prefixes of all paths that a hint may match."""
    return [
        _WILD.split("/".join([_top_of(path, root), *_names_in(path, root)]), maxsplit=1)[0]
        for path in hint.paths
    ]


def hint_number(pattern: str) -> int | None:
    """The number of the hint that assigned a pattern; None for other patterns."""
    return int(pattern.removeprefix(_MARK).partition(" ")[0]) if pattern.startswith(_MARK) else None


def free_names(name: str) -> Iterator[str]:
    """A name and alternatives, in case it is taken."""
    yield name
    yield f"all_{name}"
    yield from (f"all_{name}_{number}" for number in count(2))


def hinted_location(pattern: str) -> str | None:
    """The location of files that a hint assigned, by their pattern; None for other patterns."""
    return pattern.partition(" ")[2] if pattern.startswith(_MARK) else None


class _Pattern(NamedTuple):
    """One path of a hint; `folder` is the folder of a dataset with several paths."""

    number: int
    files: re.Pattern[str]
    top: str
    names: tuple[str, ...]
    name: str | None
    split: bool
    folder: tuple[str, ...] | None = None

    @classmethod
    def of(cls, path: str, hint: FileHint, number: int, root: str) -> "_Pattern":
        names = _names_in(path, root)
        # All files below a matching folder match as well.
        top = _top_of(path, root)
        regex = rf"{re.escape(top)}/{_regex(names)}(?:/.*)?\Z"
        return cls(
            number,
            re.compile(regex, re.DOTALL),
            top,
            names,
            hint.name,
            # Without a key to split by, every file is its own dataset.
            hint.split and "{" not in path,
            _common_folder(hint.paths, root) if len(hint.paths) > 1 else None,
        )

    def dataset(self, path: str, match: re.Match[str]) -> tuple[str, str]:
        """Path and location of the dataset that a file belongs to."""
        if self.split:
            return path, path
        top = self.top
        if self.folder is not None and self.name is not None:
            return "/".join([top, *self.folder, self.name]), "/".join([top, *self.folder])
        filled = [_fill(name, match) for name in self.names]
        named = list(filter(None, map(_without_stars, filled)))
        values = list(match.groupdict().values())
        if self.name is not None:
            # In the folder before the first wildcard, independent of the scanned root. Every value
            # of a key is its own dataset, below the name.
            fixed = list(takewhile(lambda name: not _WILD.search(name), self.names))
            folder = fixed[:-1] if fixed == list(self.names) else fixed
            is_folder = "/".join([top, *folder]).rpartition("/")[2] == self.name and not values
            named = folder if is_folder else [*folder, self.name, *values]
        while filled and not filled[-1].strip("*"):
            del filled[-1]
        return "/".join([top, *named]), "/".join([top, *filled])


def _top_of(path: str, root: str) -> str:
    """The folder that a path is relative to: the root, or one above it for absolute paths."""
    top = root.rstrip("/")
    fixed = _WILD.split(path, maxsplit=1)[0].rpartition("/")[0]
    is_above = bool(fixed) and f"{top}/".startswith(f"{fixed}/")
    return fixed if is_above else top


def _names_in(path: str, root: str) -> tuple[str, ...]:
    """The names of an absolute or relative path below its top folder."""
    top = f"{_top_of(path, root)}/"
    inside = path.removeprefix(top) if f"{path}/" != top else ""
    return tuple(filter(None, inside.split("/")))


def _common_folder(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """The folder that contains the datasets of all paths."""
    folders = (list(filter(None, map(_without_stars, _names_in(path, root)))) for path in paths)
    levels = zip(*(folder[:-1] for folder in folders), strict=False)
    return tuple(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels))


def _regex(names: Iterable[str]) -> str:
    regex = ""
    seen_keys: set[str] = set()
    for name in names:
        regex += "/" if regex and not regex.endswith("/)?") else ""
        regex += "(?:.*/)?" if name == "**" else "".join(_regex_parts(name, seen_keys))
    # `**` at the end matches all files below.
    return regex.removesuffix("(?:.*/)?").removesuffix("/") or "[^/]*"


def _regex_parts(name: str, seen_keys: set[str]) -> Iterator[str]:
    for token in _PATTERN_TOKEN.finditer(name):
        key = token[1]
        if key is not None:
            yield f"(?P={key})" if key in seen_keys else f"(?P<{key}>[^/]+)"
            seen_keys.add(key)
        elif token[0].startswith("*"):
            yield "[^/]*"
        else:
            yield "[^/]" if token[0] == "?" else re.escape(token[0])


def _fill(name: str, match: re.Match[str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda key: match[key[1]], name)


def _without_stars(name: str) -> str:
    if "*" not in name and "?" not in name:
        return name
    stem, extension = split_name(name)
    text = _AROUND_STARS.sub("_", stem).strip("_")
    return text + extension if text else ""
