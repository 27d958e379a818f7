"""The hints that a configuration and a store hold, in the order in which they are tried."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from lumos.config import Settings
from lumos.config.hint_file import SCAN
from lumos.config.sources import DatasetHint, FileStoreSettings
from lumos.discovery.resolve import file_roots, is_in
from lumos.errors import MisuseError
from lumos.sources.addresses import is_address, normal
from lumos.store import Store, StoredHint

IN_STORE: Final = "store"
WILD: Final = re.compile(r"[*?{]")
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
_BELOW: Final = re.compile(r"(/\*\*)+\Z")


class NoSuchHint(MisuseError):
    """No hint has this number or pattern."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"There is no hint '{wanted}'. To see all hints: lumos hint list")


class KeptHint(NamedTuple):
    """A hint and where it is kept: at a position of a section's list, or in the store by id."""

    hint: DatasetHint
    section: str
    position: int
    # What the source of the section scans; hints of all sources have none.
    roots: tuple[str, ...] = ()
    stored: StoredHint | None = None

    def whole_paths(self, root: str) -> frozenset[str]:
        """The hint's paths as whole ones, as far as a root is concerned."""
        return frozenset(
            _comparable(path if is_in(path, root) else f"{root.rstrip('/')}/{path.strip('/')}")
            for path in self.hint.paths
        )

    def applies_to(self, root: str) -> bool:
        """Whether files of a root may match."""
        if self.roots:
            return root in self.roots
        return any(is_in(path, root) or not is_whole(path) for path in self.hint.paths)


class Wanted(NamedTuple):
    """A hint to add, with whole paths, and the roots that it lies in, the innermost first."""

    hint: DatasetHint
    roots: tuple[str, ...]


def with_stored_hints(settings: Settings, store: Store | None) -> Settings:
    """The settings with the hints of the store after those of the configuration."""
    return with_hints(settings, () if store is None else map(hint_of, store.hints.list()))


def with_hints(settings: Settings, hints: Iterable[DatasetHint]) -> Settings:
    """The settings with more hints for all scans."""
    scan = msgspec.structs.replace(settings.scan, datasets=(*settings.scan.datasets, *hints))
    return msgspec.structs.replace(settings, scan=scan)


def kept_hints(settings: Settings, store: Store | None) -> list[KeptHint]:
    """All hints in the order in which they are tried: of sources, of all scans, of the store."""
    sections = [
        *((f"sources[{at}]", each) for at, each in enumerate(settings.sources)),
        *(
            (f"change_detection.sources[{at}]", each.source)
            for at, each in enumerate(settings.change_detection.sources)
        ),
    ]
    return [
        *(
            KeptHint(hint, name, index, tuple(file_roots(section)))
            for name, section in sections
            if isinstance(section, FileStoreSettings)
            for index, hint in enumerate(section.datasets)
        ),
        *(KeptHint(hint, SCAN, index) for index, hint in enumerate(settings.scan.datasets)),
        *(
            KeptHint(hint_of(each), IN_STORE, each.id, stored=each)
            for each in (() if store is None else store.hints.list())
        ),
    ]


def hint_of(stored: StoredHint) -> DatasetHint:
    """A hint of the store as the configuration would have it."""
    return DatasetHint(path=stored.paths, name=stored.name, split=stored.split)


def is_whole(path: str) -> bool:
    """Whether a path begins at the top of a file system or store."""
    return path.startswith("/") or is_address(path)


def _comparable(path: str) -> str:
    """A path in the one spelling by which hints for the same files are known."""
    return _BELOW.sub("", path.rstrip("/"))


def whole_path(pattern: str, settings: Settings) -> str:
    """A pattern from the current folder, or an address, as a whole path."""
    if not pattern.strip("/ "):
        raise MisuseError("The pattern is empty. Name files: lumos hint add 'raw/events/**'")
    if _UNWRITABLE.search(pattern):
        raise MisuseError(f"The pattern {pattern!r} holds a control character or a line break.")
    names = pattern.split("/")
    fixed = names.index("..") if ".." in names else len(names)
    if fixed < len(names) and (is_address(pattern) or WILD.search("/".join(names[:fixed]))):
        raise MisuseError(f"'{pattern}': '..' may only come first in a local path.")
    if is_address(pattern):
        return normal(pattern, settings.sources)
    return os.path.abspath(pattern)


def find_same(wanted: Wanted, kept: Sequence[KeptHint]) -> KeptHint | None:
    """The hint that says the same already; raises MisuseError if one says something else."""
    paths = frozenset(map(_comparable, wanted.hint.paths))
    root = wanted.roots[0]
    for number, each in enumerate(kept, start=1):
        if each.applies_to(root) and each.whole_paths(root) == paths:
            if (each.hint.name, each.hint.split) == (wanted.hint.name, wanted.hint.split):
                return each
            says = "splits them" if each.hint.split else "joins them"
            says += f" as '{each.hint.name}'" if each.hint.name else ""
            raise MisuseError(
                f"Hint {number} is for the same files and {says}. Remove it first: "
                f"lumos hint remove {number}"
            )
    return None


def find_hint(
    which: int | str, kept: Sequence[KeptHint], settings: Settings
) -> tuple[int, KeptHint]:
    """The hint of a number or pattern, and its number."""
    text = str(which)
    if text.isascii() and text.isdigit():
        if not 0 < int(text) <= len(kept):
            raise NoSuchHint(text)
        return int(text), kept[int(text) - 1]
    spellings = {_comparable(text), _comparable(whole_path(text, settings))}
    found = [
        (number, each)
        for number, each in enumerate(kept, start=1)
        if not spellings.isdisjoint(map(_comparable, each.hint.paths))
        or any(spellings & each.whole_paths(root) for root in each.roots)
    ]
    if not found:
        raise NoSuchHint(text)
    if len(found) > 1:
        numbers = ", ".join(str(number) for number, _ in found)
        raise MisuseError(f"Several hints have the pattern '{text}'. Name one by number: {numbers}")
    return found[0]


def number_of(wanted: KeptHint, kept: Sequence[KeptHint]) -> int:
    """The number of a hint in the list; 0 if it is not in it."""
    numbers = (number for number, each in enumerate(kept, start=1) if each == wanted)
    return next(numbers, 0)
