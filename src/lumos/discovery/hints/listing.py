"""The hints of the configuration and of the store, in the order in which they are tried."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from lumos.config import Settings
from lumos.config.hint_file import SCAN
from lumos.config.sources import DatasetHint, FileStoreSettings
from lumos.discovery.targets import file_roots, is_below
from lumos.errors import MisuseError
from lumos.sources.addresses import canonical_address, is_address
from lumos.store import Store, StoredHint

IN_STORE: Final = "store"
WILDCARD: Final = re.compile(r"[*?{]")
_CONTROL_CHARACTERS: Final = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
_TRAILING_WILDCARDS: Final = re.compile(r"(/\*\*)+\Z")


class NoSuchHint(MisuseError):
    """No hint has this number or pattern."""

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"No hint has the number or pattern '{pattern}'. See all with: lumos hint list"
        )


class ListedHint(NamedTuple):
    """A hint and its location: the index in a section of the configuration, or its store id."""

    hint: DatasetHint
    section: str
    position: int
    # The roots of the source that the section belongs to; empty for hints that apply to all scans.
    roots: tuple[str, ...] = ()
    stored: StoredHint | None = None

    def absolute_paths(self, root: str) -> frozenset[str]:
        """The paths of the hint; relative paths are resolved against a root."""
        return frozenset(
            _comparable(path if is_below(path, root) else f"{root.rstrip('/')}/{path.strip('/')}")
            for path in self.hint.paths
        )

    def applies_to(self, root: str) -> bool:
        """Whether the hint may match files of a root."""
        if self.roots:
            return root in self.roots
        return any(is_below(path, root) or not is_absolute(path) for path in self.hint.paths)


class HintRequest(NamedTuple):
    """A hint to add, with absolute paths, and the roots that contain these, innermost first."""

    hint: DatasetHint
    roots: tuple[str, ...]


def with_stored_hints(settings: Settings, store: Store | None) -> Settings:
    """The settings with the hints of the store after those of the configuration."""
    return with_hints(settings, () if store is None else map(to_dataset_hint, store.hints.list()))


def with_hints(settings: Settings, hints: Iterable[DatasetHint]) -> Settings:
    """The settings with additional hints for all scans."""
    scan = replace(settings.scan, datasets=(*settings.scan.datasets, *hints))
    return replace(settings, scan=scan)


def list_hints(settings: Settings, store: Store | None) -> list[ListedHint]:
    """All hints in the order in which they are tried: of sources, for all scans, in the store."""
    sections = [
        *((f"sources[{index}]", each) for index, each in enumerate(settings.sources)),
        *(
            (f"change_detection.sources[{index}]", each.source)
            for index, each in enumerate(settings.change_detection.sources)
        ),
    ]
    return [
        *(
            ListedHint(hint, name, index, tuple(file_roots(section)))
            for name, section in sections
            if isinstance(section, FileStoreSettings)
            for index, hint in enumerate(section.datasets)
        ),
        *(ListedHint(hint, SCAN, index) for index, hint in enumerate(settings.scan.datasets)),
        *(
            ListedHint(to_dataset_hint(each), IN_STORE, each.id, stored=each)
            for each in (() if store is None else store.hints.list())
        ),
    ]


def to_dataset_hint(stored: StoredHint) -> DatasetHint:
    """A hint of the store in the form of the configuration."""
    return DatasetHint(path=stored.paths, name=stored.name, split=stored.split)


def is_absolute(path: str) -> bool:
    """Whether a path is an address or begins at the root of the file system."""
    return path.startswith("/") or is_address(path)


def _comparable(path: str) -> str:
    """A path in a normal form, by which hints for the same files are compared."""
    return _TRAILING_WILDCARDS.sub("", path.rstrip("/"))


def to_absolute(pattern: str, settings: Settings) -> str:
    """An address, or a pattern relative to the working folder, as an absolute path."""
    if not pattern.strip("/ "):
        raise MisuseError("The pattern is empty. Name files: lumos hint add 'raw/events/**'")
    if _CONTROL_CHARACTERS.search(pattern):
        raise MisuseError(f"The pattern {pattern!r} contains a control character or a line break.")
    names = pattern.split("/")
    index = names.index("..") if ".." in names else len(names)
    if index < len(names) and (is_address(pattern) or WILDCARD.search("/".join(names[:index]))):
        raise MisuseError(f"'{pattern}': '..' is only allowed at the beginning of a local path.")
    if is_address(pattern):
        return canonical_address(pattern, settings.sources)
    return os.path.abspath(pattern)


def find_equal_hint(request: HintRequest, hints: Sequence[ListedHint]) -> ListedHint | None:
    """An equal hint that already exists; raises MisuseError if a hint contradicts the request."""
    paths = frozenset(map(_comparable, request.hint.paths))
    root = request.roots[0]
    for number, each in enumerate(hints, start=1):
        if each.applies_to(root) and each.absolute_paths(root) == paths:
            if (each.hint.name, each.hint.split) == (request.hint.name, request.hint.split):
                return each
            effect = "splits them" if each.hint.split else "joins them"
            effect += f" as '{each.hint.name}'" if each.hint.name else ""
            raise MisuseError(
                f"Hint {number} is for the same files and {effect}. Remove it first: "
                f"lumos hint remove {number}"
            )
    return None


def find_hint(
    which: int | str, hints: Sequence[ListedHint], settings: Settings
) -> tuple[int, ListedHint]:
    """The hint with a number or pattern, and its number."""
    text = str(which)
    if text.isascii() and text.isdigit():
        if not 0 < int(text) <= len(hints):
            raise NoSuchHint(text)
        return int(text), hints[int(text) - 1]
    candidates = {_comparable(text), _comparable(to_absolute(text, settings))}
    matches = [
        (number, each)
        for number, each in enumerate(hints, start=1)
        if not candidates.isdisjoint(map(_comparable, each.hint.paths))
        or any(candidates & each.absolute_paths(root) for root in each.roots)
    ]
    if not matches:
        raise NoSuchHint(text)
    if len(matches) > 1:
        numbers = ", ".join(str(number) for number, _ in matches)
        raise MisuseError(f"Several hints have the pattern '{text}'. Name one by number: {numbers}")
    return matches[0]


def number_of_hint(hint: ListedHint, hints: Sequence[ListedHint]) -> int:
    """The number of a hint in the list; 0 if it is not listed."""
    numbers = (number for number, each in enumerate(hints, start=1) if each == hint)
    return next(numbers, 0)
