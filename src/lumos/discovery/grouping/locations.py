"""Where files lie, with `*` for what varies in their paths."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final

from lumos.discovery.grouping.patterns import anchor_of, levels, literal, split_name
from lumos.discovery.grouping.values import BRACES
from lumos.discovery.hints import hinted_location
from lumos.discovery.summaries import PlaceSummary

_PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")
_STARS: Final = re.compile(r"\*[*?]*")
_BOUNDARIES: Final = "_-."


def location_of(places: Sequence[PlaceSummary], root: str) -> str:
    """The folder of a dataset, or a pattern for its files."""
    hinted = hinted_location(places[0].pattern)
    if hinted is not None:
        return hinted
    # Files of one dataset may lie in folders of different depth: most of them lie here.
    files: dict[str, int] = {}
    for place in places:
        for location in locations(place, root):
            files[location] = files.get(location, 0) + place.file_count
    return min(files, key=lambda location: (-files[location], location.count("*"), location))


def joined_location(places: Sequence[PlaceSummary], root: str) -> str:
    """One pattern for the files of datasets that were joined, or where most of them lie."""
    paths = {tuple(each.split("/")) for place in places for each in locations(place, root)}
    if len({len(path) for path in paths}) > 1:
        return location_of(places, root)
    return "/".join(
        names[0] if len(set(names)) == 1 else common_glob(names) or any_name(names)
        for names in zip(*sorted(paths), strict=True)
    )


def locations(place: PlaceSummary, root: str) -> Iterator[str]:
    """The folder that the first file of a place belongs to, or a pattern for it, and the last's."""
    for path in sorted({place.first_path, place.last_path}):
        shown = path_globs(path, place, root)
        folders, stem, _ = levels(path)
        if stem.is_writers:
            shown.pop()
            fixed = root_depth(root, path)
            while len(shown) - 1 > fixed and folders[len(shown) - 2].is_partition:
                shown.pop()
        yield "/".join(shown)


def path_globs(path: str, place: PlaceSummary, root: str) -> list[str]:
    """The anchor of a file, its folders and its name, with `*` for what varies in the root."""
    anchor = anchor_of(path)
    fixed = root_depth(root, path)
    folders, stem, ending = levels(path)
    names = path[len(anchor) :].strip("/").split("/")
    shown = [
        _glob(level.template.text) if level.template.varies and index >= fixed else name
        for index, (level, name) in enumerate(zip(folders, names, strict=False))
    ]
    ends = {each.rpartition("/")[2] for each in (place.first_path, place.last_path)}
    if stem.varies or len(ends) > 1:
        shown.append(_glob(stem.text) + ending + ("" if names[-1].endswith(ending) else "*"))
    else:
        shown.append(names[-1])
    return [anchor, *shown]


def root_depth(root: str, path: str) -> int:
    """How many folders of a path lead to the root; they are the same for all files."""
    return _depth(root[len(anchor_of(path)) :])


@lru_cache(maxsize=64)
def _depth(folder: str) -> int:
    return len(list(filter(None, folder.split("/"))))


def common_glob(names: Sequence[str]) -> str:
    """A pattern of the words that names begin or end with; nothing where there are none.

    A word ends at `_`, `-` or `.`, or where a number follows it in every name. Letters that names
    have in common by chance are no words, and neither is an extension.
    """
    stems, endings = zip(*map(split_name, names), strict=True)
    if len(set(endings)) > 1:
        return ""
    start = _common_start(stems).rstrip("0123456789")
    if not all(stem[len(start) : len(start) + 1].isdigit() for stem in stems):
        start = start[: max(map(start.rfind, _BOUNDARIES)) + 1]
    end = _common_start([stem[len(start) :][::-1] for stem in stems])[::-1]
    first = min((at for at in map(end.find, _BOUNDARIES) if at >= 0), default=len(end))
    end = end[first:]
    has_word = any(letter.isalnum() for letter in start + end)
    return f"{start}*{end}{endings[0]}" if has_word else ""


def any_name(names: Sequence[str]) -> str:
    """A pattern for all names of a folder, with the extension that some have in common."""
    endings = {split_name(name)[1] for name in names}
    return f"*{endings.pop()}" if len(endings) == 1 else "*"


def _common_start(names: Sequence[str]) -> str:
    letters = takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
    return "".join(each[0] for each in letters)


# The same placeholders stand in the paths of thousands of files.
@lru_cache(maxsize=4096)
def _glob(text: str) -> str:
    starred = _PLACEHOLDER.sub(lambda match: match[0] if match[1] in BRACES else "*", text)
    return literal(_STARS.sub("*", starred))
