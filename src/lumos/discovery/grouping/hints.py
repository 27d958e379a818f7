"""Assigns files to datasets by hints, by earlier splits, and otherwise by their paths."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, takewhile
from typing import Final, NamedTuple

from lumos.discovery.grouping.patterns import FileAssignment, assign_file, split_name
from lumos.storage import FileHint

# Increment this when the same paths are grouped differently, so that summaries are not reused.
_PATTERN_VERSION: Final = 2

# The prefix of patterns that hints assign: `{hint}3 /lake/orders` (number and location).
_HINT_MARK: Final = "{hint}"
# Precedes the path of the dataset in the patterns of files that were split by columns.
SPLIT_MARK: Final = "{split}"
_PATTERN_TOKEN: Final = re.compile(r"\*\*|\*|\?|\{(\w+)\}|[^*?{]+")
_WILDCARD: Final = re.compile(r"[*?{]")
_AROUND_STARS: Final = re.compile(r"[\W_]*[*?]+[\W_]*")


class ColumnSplit(NamedTuple):
    """Files of one path pattern that an earlier scan split into different datasets.

    `label` is the position of the value that distinguishes them (see `FileAssignment.path_values`),
    and `datasets` maps each value to a dataset.
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
            _HintPattern.of(path, hint, number, root)
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
        # Stored with every summary; a summary with another fingerprint is not reused.
        self.fingerprint = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def assign(self, path: str) -> FileAssignment:
        """Assign a file by the first hint that matches, by an earlier split, or by its path."""
        assignment = assign_file(path)
        for each in self._patterns:
            match = each.files.match(path)
            if match is not None:
                dataset, location = each.dataset(path, match)
                pattern = f"{_HINT_MARK}{each.number} {location}"
                return FileAssignment(dataset, pattern, dataset, assignment.partitions)
        split = self._splits.get(assignment.dataset) if self._splits else None
        if split is not None:
            value = dict(assignment.path_values).get(split.label, "")
            dataset = split.datasets.get(value, assignment.dataset)
            # A separate pattern, so that files of both datasets are summarised separately even if
            # their schemas are equal.
            pattern = f"{assignment.pattern}{SPLIT_MARK}{dataset}"
            return assignment._replace(pattern=pattern, dataset=dataset)
        return assignment

    def matching_hints(self, path: str) -> list[int]:
        """The numbers of all hints that match a file; the first one is used."""
        numbers = (each.number for each in self._patterns if each.files.match(path) is not None)
        return list(dict.fromkeys(numbers))


def prefixes_of(hint: FileHint, root: str) -> list[str]:
    """Prefixes of all paths that a hint may match."""
    return [
        _WILDCARD.split(
            "/".join([_base_folder(path, root), *_names_below(path, root)]), maxsplit=1
        )[0]
        for path in hint.paths
    ]


def hint_number(pattern: str) -> int | None:
    """The number of the hint that assigned a pattern; None for other patterns."""
    return (
        int(pattern.removeprefix(_HINT_MARK).partition(" ")[0])
        if pattern.startswith(_HINT_MARK)
        else None
    )


def free_names(name: str) -> Iterator[str]:
    """A name, then alternatives in case the name is taken: `all_x`, `all_x_2`."""
    yield name
    yield f"all_{name}"
    yield from (f"all_{name}_{number}" for number in count(2))


def hinted_location(pattern: str) -> str | None:
    """The location of files that a hint assigned, by their pattern; None for other patterns."""
    return pattern.partition(" ")[2] if pattern.startswith(_HINT_MARK) else None


class _HintPattern(NamedTuple):
    """One path of a hint, relative to the folder `base`.

    `folder` is only set if the hint has several paths: it contains their common dataset.
    """

    number: int
    files: re.Pattern[str]
    base: str
    names: tuple[str, ...]
    name: str | None
    split: bool
    folder: tuple[str, ...] | None = None

    @classmethod
    def of(cls, path: str, hint: FileHint, number: int, root: str) -> "_HintPattern":
        names = _names_below(path, root)
        # The regular expression also matches all files below a matching folder.
        base = _base_folder(path, root)
        regex = rf"{re.escape(base)}/{_regex(names)}(?:/.*)?\Z"
        return cls(
            number,
            re.compile(regex, re.DOTALL),
            base,
            names,
            hint.name,
            # With `split` and no key such as `{shop}`, every file is a dataset.
            hint.split and "{" not in path,
            _common_folder(hint.paths, root) if len(hint.paths) > 1 else None,
        )

    def dataset(self, path: str, match: re.Match[str]) -> tuple[str, str]:
        """Path and location of the dataset that a file belongs to."""
        if self.split:
            return path, path
        base = self.base
        if self.folder is not None and self.name is not None:
            return "/".join([base, *self.folder, self.name]), "/".join([base, *self.folder])
        location = [re.sub(r"\{(\w+)\}", lambda key: match[key[1]], name) for name in self.names]
        dataset = list(filter(None, map(_without_stars, location)))
        values = list(match.groupdict().values())
        if self.name is not None:
            # The folder before the first wildcard contains the dataset, for every scanned root.
            # Every value of a key is a separate dataset, below the name.
            fixed = list(takewhile(lambda name: not _WILDCARD.search(name), self.names))
            folder = fixed[:-1] if fixed == list(self.names) else fixed
            is_folder_name = (
                "/".join([base, *folder]).rpartition("/")[2] == self.name and not values
            )
            dataset = folder if is_folder_name else [*folder, self.name, *values]
        while location and not location[-1].strip("*"):
            del location[-1]
        return "/".join([base, *dataset]), "/".join([base, *location])


def _base_folder(path: str, root: str) -> str:
    """The folder to which a path is relative: the root or, for some absolute paths, a parent."""
    root_folder = root.rstrip("/")
    folder = _WILDCARD.split(path, maxsplit=1)[0].rpartition("/")[0]
    is_above = bool(folder) and f"{root_folder}/".startswith(f"{folder}/")
    return folder if is_above else root_folder


def _names_below(path: str, root: str) -> tuple[str, ...]:
    """The names of an absolute or relative path below its base folder."""
    prefix = f"{_base_folder(path, root)}/"
    relative = path.removeprefix(prefix) if f"{path}/" != prefix else ""
    return tuple(filter(None, relative.split("/")))


def _common_folder(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """The folder that contains the datasets of all paths."""
    folders = (list(filter(None, map(_without_stars, _names_below(path, root)))) for path in paths)
    folder_names = zip(*(folder[:-1] for folder in folders), strict=False)
    return tuple(names[0] for names in takewhile(lambda names: len(set(names)) == 1, folder_names))


def _regex(names: Iterable[str]) -> str:
    regex = ""
    seen_keys: set[str] = set()
    for name in names:
        regex += "/" if regex and not regex.endswith("/)?") else ""
        regex += "(?:.*/)?" if name == "**" else "".join(_regex_tokens(name, seen_keys))
    # `**` at the end matches all files below.
    return regex.removesuffix("(?:.*/)?").removesuffix("/") or "[^/]*"


def _regex_tokens(name: str, seen_keys: set[str]) -> Iterator[str]:
    for token in _PATTERN_TOKEN.finditer(name):
        key = token[1]
        if key is not None:
            yield f"(?P={key})" if key in seen_keys else f"(?P<{key}>[^/]+)"
            seen_keys.add(key)
        elif token[0].startswith("*"):
            yield "[^/]*"
        else:
            yield "[^/]" if token[0] == "?" else re.escape(token[0])


def _without_stars(name: str) -> str:
    if "*" not in name and "?" not in name:
        return name
    stem, extension = split_name(name)
    text = _AROUND_STARS.sub("_", stem).strip("_")
    return text + extension if text else ""
