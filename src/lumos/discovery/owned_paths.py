"""Which folders belong to tables, so that no file in them is a dataset of its own."""

from collections.abc import Iterable, Iterator
from typing import Final

from lumos.storage import KeyRange, ListedFile

# Sorts after whatever may follow in a path.
_LAST: Final = "\U0010ffff"


class Claims:
    """Folders of tables: roots, and places outside of them, or single files, with their data."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = frozenset(folders)
        self._around = ("", "")
        # Those that something was left out for.
        self.used: set[str] = set()

    def of(self, path: str) -> str | None:
        """The innermost claimed folder that a file lies in, if there is any."""
        if path in self._folders:
            return path
        folder = path.rpartition("/")[0]
        if folder != self._around[0]:
            # Files come folder by folder.
            self._around = (folder, self._found(folder))
        return self._around[1] or None

    def _found(self, folder: str) -> str:
        while folder and folder not in self._folders:
            folder = folder.rpartition("/")[0]
        return folder

    def without(self, files: Iterable[ListedFile]) -> Iterator[ListedFile]:
        """The files that no table claims."""
        for each in files:
            claim = self.of(each.path)
            if claim is None:
                yield each
            else:
                self.used.add(claim)


def may_meet(place: KeyRange, claim: str) -> bool:
    """Whether files of a claimed folder, or a claimed file, may have been listed in a place."""
    folder = place.folder.rstrip("/")
    if f"{folder}/".startswith(f"{claim}/"):
        return True
    if not claim.startswith(f"{folder}/"):
        return False
    if not place.deep:
        return claim.rpartition("/")[0] == folder
    return f"{claim}/{_LAST}" > place.after and (not place.until or claim <= place.until)
