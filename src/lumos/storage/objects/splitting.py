"""Divides a bucket into ranges of keys, and lists one of them with several requests at a time."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from lumos.storage.interface import is_hidden
from lumos.storage.objects.bucket import Bucket, Page
from lumos.storage.objects.ranges import LAST, key_bounds, ranges_between

_AT_ONCE: Final = 16
# A stretch that goes on after so many pages is worth the requests that divide it.
_PAGES_IN_A_ROW: Final = 20


def is_below_hidden(prefix: str, key: str) -> bool:
    """Whether some part of a key behind a prefix is a marker or scratch space."""
    return any(map(is_hidden, key[len(prefix) :].split("/")))


def folder_bounds(bucket: Bucket, prefix: str, parts: int) -> set[str]:
    """Texts that divide the keys below a prefix: ends of folders, and of ranges in flat ones."""
    bounds: set[str] = set()
    waiting = deque([prefix])
    asked = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while waiting and asked < parts and len(bounds) < parts:
            some = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
            asked += len(some)
            pages = pool.map(lambda folder: bucket.page(folder, folders=True), some)
            for folder, page in zip(some, pages, strict=True):
                if page.token:
                    # What a single page shows says nothing about the rest of a crowded folder.
                    bounds.update(_flat_bounds(bucket, folder, "", parts))
                    continue
                bounds.update(f"{below}{LAST}" for below in page.folders)
                waiting.extend(
                    below for below in page.folders if not is_below_hidden(folder, below)
                )
    return bounds


def _flat_bounds(bucket: Bucket, prefix: str, after: str, parts: int) -> list[str]:
    def first(below: str, later: str) -> str | None:
        found = bucket.page(below, after=later, limit=1).entries
        return found[0].key if found else None

    def is_small(below: str, later: str) -> bool:
        return not bucket.page(below, after=later).token

    return key_bounds(first, is_small, prefix, after=after, parts=parts)


def range_pages(
    bucket: Bucket, prefix: str, after: str, until: str, *, deep: bool
) -> Iterator[Page]:
    """The pages of a range of keys, after a while from several places of it at a time."""
    pages = bucket.pages(prefix, after=after, folders=not deep)
    reached = after
    for page in islice(pages, _PAGES_IN_A_ROW):
        yield from _until([page], until)
        reached = max(reached, page.last)
        if not page.token or (until and reached > until):
            return
    bounds = _flat_bounds(bucket, prefix, reached, _AT_ONCE) if deep else []
    yield from _side_by_side(
        [
            _until(bucket.pages(prefix, after=start, folders=not deep), end)
            for start, end in ranges_between(bounds, after=reached, until=until)
        ]
    )


def _until(pages: Iterable[Page], until: str) -> Iterator[Page]:
    for page in pages:
        if until and page.last > until:
            yield page._replace(entries=[entry for entry in page.entries if entry.key <= until])
            return
        yield page


def _side_by_side(several: list[Iterator[Page]]) -> Iterator[Page]:
    """The pages of several ranges, a page of each at a time, so that no more are held."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while several:
            pages = list(pool.map(lambda pages: next(pages, None), several))
            yield from (page for page in pages if page is not None)
            several = [each for each, page in zip(several, pages, strict=True) if page is not None]
