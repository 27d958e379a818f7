"""Divides a bucket into ranges of keys, and lists one of them with several requests at a time."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, NamedTuple

from lumos.storage.interface import TableKind, is_hidden
from lumos.storage.markers import LOGS, METADATA, is_iceberg, marker_in
from lumos.storage.objects.bucket import Bucket, Page
from lumos.storage.objects.ranges import LAST, key_bounds, ranges_between

_AT_ONCE: Final = 16
# A stretch that goes on after so many pages is worth the requests that divide it.
_PAGES_IN_A_ROW: Final = 20


def is_below_hidden(prefix: str, key: str) -> bool:
    """Whether some part of a key behind a prefix is a marker or scratch space."""
    path = key[len(prefix) :]
    # Of millions of keys, nearly all have no such part.
    if "/_" not in path and "/." not in path and not path.startswith(("_", ".")):
        return False
    return any(map(is_hidden, path.split("/")))


class Divided(NamedTuple):
    """Texts that divide keys, and which of the folders met are tables, of which kinds."""

    bounds: set[str]
    tables: dict[str, set[TableKind]]


def folder_bounds(bucket: Bucket, prefix: str, parts: int, *, tables: bool) -> Divided:
    """Divides the keys below a prefix: at ends of folders, and of ranges in flat ones."""
    bounds: set[str] = set()
    found: dict[str, set[TableKind]] = {}
    looked_at: set[str] = set()
    waiting = deque([prefix])
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while waiting and len(looked_at) < parts and len(bounds) < parts:
            some = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
            looked_at.update(some)
            pages = pool.map(lambda folder: bucket.page(folder, folders=True), some)
            for folder, page in zip(some, pages, strict=True):
                kinds = kinds_of(bucket, folder, page) if tables else set()
                if kinds:
                    found[folder] = kinds
                elif page.token:
                    # What a single page shows says nothing about the rest of a crowded folder.
                    bounds.update(_flat_bounds(bucket, folder, "", parts))
                else:
                    bounds.update(f"{below}{LAST}" for below in page.folders)
                    waiting.extend(
                        below for below in page.folders if not is_below_hidden(folder, below)
                    )
        if tables:
            # A range that begins or ends inside a table may show nothing else of it.
            cut = sorted(_folders_around(prefix, bounds) - looked_at)[:parts]
            kinds_of_cut = pool.map(lambda folder: kinds_of(bucket, folder, None), cut)
            found.update(
                {key: kinds for key, kinds in zip(cut, kinds_of_cut, strict=True) if kinds}
            )
    return Divided({each for each in bounds if not each.startswith(tuple(found))}, found)


def kinds_of(bucket: Bucket, folder: str, page: Page | None) -> set[TableKind]:
    """Which tables' logs lie right in a folder, as far as the page of its folders does not tell."""
    is_told = page is not None and not page.token
    below = set(page.folders) if page is not None else set()

    def has(name: str) -> bool:
        log = f"{folder}{name}/"
        return log in below or (not is_told and bool(bucket.page(log, limit=1).entries))

    kinds = {kind for name, kind in LOGS.items() if has(name)}
    metadata = f"{folder}{METADATA}/"
    if metadata in below or not is_told:
        # Numbers come first; a name that begins with v comes behind all manifests.
        pages = (bucket.page(metadata, after=f"{metadata}{first}") for first in ("0", "v"))
        names = (entry.key[len(metadata) :] for page in pages for entry in page.entries)
        kinds |= {"iceberg"} if any(map(is_iceberg, names)) else set()
    return kinds


def _folders_around(prefix: str, bounds: Iterable[str]) -> set[str]:
    """The folders below a prefix in which some bound lies."""
    return {
        bound[: len(prefix) + slash.end()]
        for bound in bounds
        for slash in re.finditer("/", bound[len(prefix) :])
    }


def _flat_bounds(bucket: Bucket, prefix: str, after: str, parts: int) -> list[str]:
    def first(below: str, later: str) -> str | None:
        found = bucket.page(below, after=later, limit=1).entries
        return found[0].key if found else None

    def is_small(below: str, later: str) -> bool:
        return not bucket.page(below, after=later).token

    return key_bounds(first, is_small, prefix, after=after, parts=parts)


def range_pages(
    bucket: Bucket, prefix: str, after: str, until: str, *, deep: bool, tables: bool
) -> Iterator[Page]:
    """The pages of a range of keys, after a while from several places of it at a time."""
    if deep and tables:
        pages = _jumping(bucket, prefix, after)
    else:
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
            _until(
                _jumping(bucket, prefix, start)
                if deep and tables
                else bucket.pages(prefix, after=start, folders=not deep),
                end,
            )
            for start, end in ranges_between(bounds, after=reached, until=until)
        ]
    )


def _jumping(bucket: Bucket, prefix: str, after: str) -> Iterator[Page]:
    """All pages behind a text, without those that hold nothing but files of a table."""
    beyond: str | None = after
    while beyond is not None:
        pages, beyond = bucket.pages(prefix, after=beyond), None
        for page in pages:
            yield page
            end = _end_of_table(prefix, page)
            if page.token and end > page.last:
                beyond = end
                break


def _end_of_table(prefix: str, page: Page) -> str:
    """Up to where everything belongs to the last table of which the page shows the log."""
    roots = (marker_in(entry.key[len(prefix) :]) for entry in reversed(page.entries))
    met = next(filter(None, roots), None)
    if met is None:
        return ""
    return f"{prefix}{met.root}/{LAST}" if met.root else f"{prefix}{LAST}"


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
