"""Divides the keys below a prefix into ranges, with few requests and without counting them."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Final, NamedTuple
from zlib import crc32

from lumos.storage.interface import TableKind, is_hidden
from lumos.storage.objects.bucket import AFTER_ALL, ObjectBucket, ObjectPage
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg, table_root_in

# The first key with a prefix that sorts after a text, if there is any.
FirstKey = Callable[[str, str], str | None]


class _BudgetSpent(Exception):
    """The budget of requests is used up."""


def key_bounds(
    first: FirstKey,
    is_small: Callable[[str, str], bool],
    prefix: str,
    *,
    after: str,
    parts: int,
) -> list[str]:
    """Bounds that divide the keys below a prefix into about `parts` ranges.

    Jumps from one character that follows the prefix to the next one in use, then does the same
    below each of them, breadth first. A prefix that `is_small` is left whole.
    """
    budget = 8 * parts + 40

    def asked(below: str, later: str) -> str | None:
        nonlocal budget
        if budget <= 0:
            raise _BudgetSpent
        budget -= 1
        return first(below, max(after, later))

    bounds: set[str] = set()
    waiting = deque([prefix])
    try:
        while waiting and len(bounds) < parts:
            node = waiting.popleft()
            if node != prefix and is_small(node, after):
                continue
            for child in _children(asked, node):
                bounds.add(child + AFTER_ALL)
                waiting.append(child)
    except _BudgetSpent:
        pass
    return sorted(bounds)


def _children(first: FirstKey, node: str) -> Iterator[str]:
    """The prefixes one character longer than what all keys below a node have in common."""
    key = first(node, node)
    if key is None:
        return
    stem = _common(first, node, key)
    if stem == key:
        key = first(stem, key)
    while key is not None:
        child = key[: len(stem) + 1]
        yield child
        key = first(stem, child + AFTER_ALL)


def _common(first: FirstKey, node: str, key: str) -> str:
    """The longest beginning of a node's first key that all its keys share."""
    shared, too_long = len(node), len(key) + 1
    while too_long - shared > 1:
        middle = (shared + too_long) // 2
        if first(node, key[:middle] + AFTER_ALL) is None:
            shared = middle
        else:
            too_long = middle
    return key[:shared]


def stable_sample(bounds: set[str], most: int) -> list[str]:
    """At most so many of the bounds, nearly the same ones after some came or went."""
    by_chance = sorted(bounds, key=lambda bound: crc32(bound.encode()))
    return sorted(by_chance[:most])


def ranges_between(bounds: list[str], *, after: str, until: str) -> list[tuple[str, str]]:
    """Ranges without gaps from `after` to `until`, where an empty `until` is the end."""
    inner = [bound for bound in bounds if bound > after and (not until or bound < until)]
    return list(pairwise([after, *inner, until]))


_CONCURRENCY: Final = 16
# A range with more pages is worth the requests that divide it.
_PAGES_IN_A_ROW: Final = 20


def is_below_hidden(prefix: str, key: str) -> bool:
    """Whether some part of a key behind a prefix is a marker or scratch space."""
    path = key[len(prefix) :]
    # Of millions of keys, nearly all have no such part.
    if "/_" not in path and "/." not in path and not path.startswith(("_", ".")):
        return False
    return any(map(is_hidden, path.split("/")))


class KeyDivision(NamedTuple):
    """Texts that divide keys, and which of the folders met are tables, of which kinds."""

    bounds: set[str]
    tables: dict[str, set[TableKind]]


def folder_bounds(bucket: ObjectBucket, prefix: str, parts: int, *, tables: bool) -> KeyDivision:
    """Divides the keys below a prefix: at ends of folders, and of ranges in flat ones."""
    bounds: set[str] = set()
    found: dict[str, set[TableKind]] = {}
    looked_at: set[str] = set()
    waiting = deque([prefix])
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        while waiting and len(looked_at) < parts and len(bounds) < parts:
            some = [waiting.popleft() for _ in range(min(_CONCURRENCY, len(waiting)))]
            looked_at.update(some)
            pages = pool.map(lambda folder: bucket.page(folder, folders=True), some)
            for folder, page in zip(some, pages, strict=True):
                kinds = table_kinds(bucket, folder, page) if tables else set()
                if kinds:
                    found[folder] = kinds
                elif page.token:
                    # The first page of a large folder is not representative of the rest.
                    bounds.update(_flat_bounds(bucket, folder, "", parts))
                else:
                    bounds.update(f"{below}{AFTER_ALL}" for below in page.folders)
                    waiting.extend(
                        below for below in page.folders if not is_below_hidden(folder, below)
                    )
        if tables:
            # A range that begins or ends inside a table may show nothing else of it.
            cut = sorted(_folders_around(prefix, bounds) - looked_at)[:parts]
            kinds_of_cut = pool.map(lambda folder: table_kinds(bucket, folder, None), cut)
            found.update(
                {key: kinds for key, kinds in zip(cut, kinds_of_cut, strict=True) if kinds}
            )
    return KeyDivision({each for each in bounds if not each.startswith(tuple(found))}, found)


def table_kinds(bucket: ObjectBucket, folder: str, page: ObjectPage | None) -> set[TableKind]:
    """The kinds of tables that have their log in a folder; complete pages save requests."""
    is_complete = page is not None and not page.token
    below = set(page.folders) if page is not None else set()

    def has(name: str) -> bool:
        log = f"{folder}{name}/"
        return log in below or (not is_complete and bool(bucket.page(log, limit=1).entries))

    kinds = {kind for name, kind in LOG_FOLDERS.items() if has(name)}
    metadata = f"{folder}{METADATA_FOLDER}/"
    if metadata in below or not is_complete:
        # Numbers come first; a name that begins with v comes behind all manifests.
        pages = (bucket.page(metadata, after=f"{metadata}{first}") for first in ("0", "v"))
        names = (entry.key[len(metadata) :] for page in pages for entry in page.entries)
        kinds |= {"iceberg"} if any(map(is_iceberg, names)) else set()
    return kinds


def _folders_around(prefix: str, bounds: Iterable[str]) -> set[str]:
    """The folders below a prefix that contain a bound."""
    return {
        bound[: len(prefix) + slash.end()]
        for bound in bounds
        for slash in re.finditer("/", bound[len(prefix) :])
    }


def _flat_bounds(bucket: ObjectBucket, prefix: str, after: str, parts: int) -> list[str]:
    def first(below: str, later: str) -> str | None:
        found = bucket.page(below, after=later, limit=1).entries
        return found[0].key if found else None

    def is_small(below: str, later: str) -> bool:
        return not bucket.page(below, after=later).token

    return key_bounds(first, is_small, prefix, after=after, parts=parts)


def range_pages(
    bucket: ObjectBucket, prefix: str, after: str, until: str, *, deep: bool, tables: bool
) -> Iterator[ObjectPage]:
    """The pages of a range of keys, after a while from several places of it at a time."""
    if deep and tables:
        pages = _pages_without_tables(bucket, prefix, after)
    else:
        pages = bucket.pages(prefix, after=after, folders=not deep)
    reached = after
    for page in islice(pages, _PAGES_IN_A_ROW):
        yield from _until([page], until)
        reached = max(reached, page.last)
        if not page.token or (until and reached > until):
            return
    bounds = _flat_bounds(bucket, prefix, reached, _CONCURRENCY) if deep else []
    yield from _interleave(
        [
            _until(
                _pages_without_tables(bucket, prefix, start)
                if deep and tables
                else bucket.pages(prefix, after=start, folders=not deep),
                end,
            )
            for start, end in ranges_between(bounds, after=reached, until=until)
        ]
    )


def _pages_without_tables(bucket: ObjectBucket, prefix: str, after: str) -> Iterator[ObjectPage]:
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


def _end_of_table(prefix: str, page: ObjectPage) -> str:
    """Up to where everything belongs to the last table of which the page shows the log."""
    roots = (table_root_in(entry.key[len(prefix) :]) for entry in reversed(page.entries))
    met = next(filter(None, roots), None)
    if met is None:
        return ""
    return f"{prefix}{met.root}/{AFTER_ALL}" if met.root else f"{prefix}{AFTER_ALL}"


def _until(pages: Iterable[ObjectPage], until: str) -> Iterator[ObjectPage]:
    for page in pages:
        if until and page.last > until:
            yield page._replace(entries=[entry for entry in page.entries if entry.key <= until])
            return
        yield page


def _interleave(several: list[Iterator[ObjectPage]]) -> Iterator[ObjectPage]:
    """The pages of several ranges, a page of each at a time, so that no more are held."""
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        while several:
            pages = list(pool.map(lambda pages: next(pages, None), several))
            yield from (page for page in pages if page is not None)
            several = [each for each, page in zip(several, pages, strict=True) if page is not None]
