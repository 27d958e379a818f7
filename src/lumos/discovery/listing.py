"""Divides a root into works of about the same size, alike from scan to scan."""

from collections.abc import Iterable
from zlib import crc32

from lumos.discovery.parts import PartIndex
from lumos.discovery.scan_task import Portion, Work
from lumos.storage import FileSelection, KeyRange, ListedFile, ListingProblem, TableRoot, storage_of


def plan(
    selection: FileSelection, *, parts: int, known: PartIndex
) -> tuple[list[Work], list[TableRoot]]:
    """Works that together list the selection, in about `parts` tasks, and tables met already.

    A stretch always comes to the same work, so that new folders beside it leave the part that
    was written for it as it is.
    """
    storage = storage_of(selection.root, selection.access)
    met, stretches = storage.split(
        selection.root, parts=parts, deep=selection.recursive, tables=selection.tables
    )
    works = [Work(some) for some in _divided(sorted(stretches), parts)]
    if files := [each for each in met if not isinstance(each, TableRoot)]:
        works.append(_met(files))
    for work in works:
        work.known = [part.path for part in known.of(work.places)]
    return works, [each for each in met if isinstance(each, TableRoot)]


def _divided(stretches: list[KeyRange], parts: int) -> list[list[KeyRange]]:
    """Few stretches are a work each; many are dealt out by their names, evenly enough."""
    if len(stretches) <= 2 * parts:
        return [[stretch] for stretch in stretches]
    by_number: dict[int, list[KeyRange]] = {}
    for stretch in stretches:
        name = "\n".join(stretch[:3]).encode("utf-8", "surrogatepass")
        by_number.setdefault(crc32(name) % parts, []).append(stretch)
    return list(by_number.values())


def _met(met: Iterable[ListedFile | ListingProblem]) -> Work:
    """The work of reading what was listed in passing, at the top of the root."""
    listed = [each for each in met if isinstance(each, ListedFile)]
    unlisted = [each for each in met if isinstance(each, ListingProblem)]
    folders = {each.path.rpartition("/")[0] for each in listed}
    tops = [KeyRange(folder, deep=False) for folder in folders]
    hidden = [KeyRange(each.path) for each in unlisted]
    return Work([], listed=listed, unlisted=unlisted, met=sorted([*tops, *hidden]))


def plan_left_over(portions: Iterable[Portion], known: PartIndex) -> list[Work]:
    """Works for what the tasks of an earlier plan left over."""
    return [
        Work(
            [],
            met=portion.places,
            portion=portion.path,
            known=[
                part.path
                for part in known.of(portion.places, first=portion.first, last=portion.last)
            ],
        )
        for portion in portions
    ]
