"""Places files as hints say, then as their paths say."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from lumos.pipeline.patterns import Placement, place, split_name
from lumos.storage import Hint

# Raised whenever the same paths are placed differently, so that earlier sums are not used again.
_PATTERN_VERSION: Final = 1

# Marks the pattern of a place that a hint decided; the hint's number and a location follow.
_MARK: Final = "{hint}"
# Marks the pattern of a place that an earlier decision by columns set apart.
SPLIT_MARK: Final = "{split}"
_PIECE: Final = re.compile(r"\*\*|\*|\?|\{(\w+)\}|[^*?{]+")
_AROUND_STARS: Final = re.compile(r"[\W_]*[*?]+[\W_]*")


class ColumnSplit(NamedTuple):
    """Files under one path pattern that an earlier scan found to be different datasets.

    `label` says where the value stands that tells them apart (see `Placement.others`), and
    `datasets` holds the dataset of each value.
    """

    dataset: str
    label: str
    datasets: dict[str, str]

    @property
    def own_datasets(self) -> set[str]:
        """The datasets that are named by a value."""
        return set(self.datasets.values()) - {self.dataset}


class Hints:
    """Where the files of one root belong: by hints, by earlier splits, by their paths."""

    def __init__(
        self, hints: Sequence[Hint], *, root: str, splits: Sequence[ColumnSplit] = ()
    ) -> None:
        self._root = root
        self._hints = [_Hint.of(hint, root) for hint in hints]
        self._splits = {split.dataset: split for split in splits}
        text = "\n".join(
            (
                str(_PATTERN_VERSION),
                *(f"{hint.path}\n{hint.name}\n{hint.apart}" for hint in hints),
                *(
                    f"{each.dataset}\n{each.label}\n{sorted(each.datasets.items())}"
                    for each in splits
                ),
            )
        )
        # Kept with every sum, so that one made under other hints is not used again.
        self.fingerprint = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def place(self, path: str) -> Placement:
        """The placement of a file: by the first hint that matches, or by its path."""
        placed = place(path)
        for number, hint in enumerate(self._hints):
            match = hint.files.match(path)
            if match is not None:
                dataset, location = hint.dataset(path, match, self._root)
                pattern = f"{_MARK}{number} {location}"
                return Placement(dataset, pattern, dataset, placed.partitions)
        split = self._splits.get(placed.dataset) if self._splits else None
        if split is not None:
            value = dict(placed.others).get(split.label, "")
            dataset = split.datasets.get(value, placed.dataset)
            # A place of its own, so that equal schemas on both sides are summed up separately.
            pattern = f"{placed.pattern}{SPLIT_MARK}{dataset}"
            return placed._replace(pattern=pattern, dataset=dataset)
        return placed


def hinted_location(pattern: str) -> str | None:
    """The location of the files of a pattern that a hint decided; nothing for other patterns."""
    return pattern.partition(" ")[2] if pattern.startswith(_MARK) else None


class _Hint(NamedTuple):
    files: re.Pattern[str]
    names: tuple[str, ...]
    name: str | None
    apart: bool

    @classmethod
    def of(cls, hint: Hint, root: str) -> "_Hint":
        inside = hint.path.removeprefix(root) if hint.path.startswith(root) else hint.path
        names = tuple(filter(None, inside.split("/")))
        # All files below a folder that fits belong to it too.
        regex = rf"{re.escape(root.rstrip('/'))}/{_regex(names)}(?:/.*)?\Z"
        return cls(re.compile(regex, re.DOTALL), names, hint.name, hint.apart)

    def dataset(self, path: str, match: re.Match[str], root: str) -> tuple[str, str]:
        """Path and location of the dataset that a file belongs to."""
        if self.apart:
            return path, path
        top = root.rstrip("/")
        filled = [_filled(name, match) for name in self.names]
        named = list(filter(None, map(_without_stars, filled)))
        if self.name is not None:
            named[-1:] = [self.name]
        while filled and not filled[-1].strip("*"):
            del filled[-1]
        return "/".join([top, *named]), "/".join([top, *filled])


def _regex(names: Iterable[str]) -> str:
    regex = ""
    seen: set[str] = set()
    for name in names:
        regex += "/" if regex and not regex.endswith("/)?") else ""
        regex += "(?:.*/)?" if name == "**" else "".join(_pieces(name, seen))
    # Folders of any depth at the end are the files below them.
    return regex.removesuffix("(?:.*/)?").removesuffix("/") or "[^/]*"


def _pieces(name: str, seen: set[str]) -> Iterator[str]:
    for piece in _PIECE.finditer(name):
        key = piece[1]
        if key is not None:
            yield f"(?P={key})" if key in seen else f"(?P<{key}>[^/]+)"
            seen.add(key)
        elif piece[0].startswith("*"):
            yield "[^/]*"
        else:
            yield "[^/]" if piece[0] == "?" else re.escape(piece[0])


def _filled(name: str, match: re.Match[str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda key: match[key[1]], name)


def _without_stars(name: str) -> str:
    if "*" not in name and "?" not in name:
        return name
    stem, ending = split_name(name)
    text = _AROUND_STARS.sub("_", stem).strip("_")
    return text + ending if text else ""
