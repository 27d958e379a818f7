"""Divides the keys below a prefix into ranges with few requests, without counting the keys."""

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

# Finds the first key that starts with a prefix and sorts after a text; None if there is none.
FindFirstKey = Callable[[str, str], str | None]


class _BudgetExceeded(Exception):
    """The request budget is used up."""


def key_bounds(
    find_first: FindFirstKey,
    is_small: Callable[[str, str], bool],
    prefix: str,
    *,
    after: str,
    parts: int,
) -> list[str]:
    """Bounds that divide the keys below a prefix into about `parts` ranges.

    Finds all characters that follow the prefix, with one request for each, then repeats this for
    each longer prefix, breadth-first. A prefix for which `is_small` returns true is not divided.
    """
    budget = 8 * parts + 40

    def find_first_within_budget(key_prefix: str, key_after: str) -> str | None:
        nonlocal budget
        if budget <= 0:
            raise _BudgetExceeded
        budget -= 1
        return find_first(key_prefix, max(after, key_after))

    bounds: set[str] = set()
    queue = deque([prefix])
    try:
        while queue and len(bounds) < parts:
            parent = queue.popleft()
            if parent != prefix and is_small(parent, after):
                continue
            for child in _children(find_first_within_budget, parent):
                bounds.add(child + AFTER_ALL)
                queue.append(child)
    except _BudgetExceeded:
        pass
    return sorted(bounds)


def _children(find_first: FindFirstKey, prefix: str) -> Iterator[str]:
    """Yield the prefixes that extend the common prefix of all keys by one character."""
    key = find_first(prefix, prefix)
    if key is None:
        return
    stem = _common_prefix(find_first, prefix, key)
    if stem == key:
        key = find_first(stem, key)
    while key is not None:
        child = key[: len(stem) + 1]
        yield child
        key = find_first(stem, child + AFTER_ALL)


def _common_prefix(find_first: FindFirstKey, prefix: str, key: str) -> str:
    """The longest common prefix of all keys that start with `prefix`; `key` is the first key."""
    shared, too_long = len(prefix), len(key) + 1
    while too_long - shared > 1:
        middle = (shared + too_long) // 2
        if find_first(prefix, key[:middle] + AFTER_ALL) is None:
            shared = middle
        else:
            too_long = middle
    return key[:shared]


def stable_sample(bounds: set[str], limit: int) -> list[str]:
    """Select at most `limit` bounds; if few bounds change, the selection changes little."""
    shuffled = sorted(bounds, key=lambda bound: crc32(bound.encode()))
    return sorted(shuffled[:limit])


def ranges_between(bounds: list[str], *, after: str, until: str) -> list[tuple[str, str]]:
    """Divide the range from `after` to `until` at the bounds; an empty `until` is no limit."""
    inner = [bound for bound in bounds if bound > after and (not until or bound < until)]
    return list(pairwise([after, *inner, until]))


_CONCURRENCY: Final = 16
# A range with more pages is divided; for fewer pages, this would take too many requests.
_MAX_SEQUENTIAL_PAGES: Final = 20


def has_hidden_part(prefix: str, key: str) -> bool:
    """Whether the key contains a hidden folder or file name after the prefix."""
    path = key[len(prefix) :]
    # A fast check first, since nearly all keys have no such part.
    if "/_" not in path and "/." not in path and not path.startswith(("_", ".")):
        return False
    return any(map(is_hidden, path.split("/")))


class KeyDivision(NamedTuple):
    """Bounds that divide the keys of a bucket, and the kinds of tables by their folder."""

    bounds: set[str]
    tables: dict[str, set[TableKind]]


def folder_bounds(bucket: ObjectBucket, prefix: str, parts: int, *, tables: bool) -> KeyDivision:
    """Divide the keys below a prefix at the ends of folders, and inside folders with many files."""
    bounds: set[str] = set()
    kinds_by_folder: dict[str, set[TableKind]] = {}
    visited: set[str] = set()
    queue = deque([prefix])
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        while queue and len(visited) < parts and len(bounds) < parts:
            batch = [queue.popleft() for _ in range(min(_CONCURRENCY, len(queue)))]
            visited.update(batch)
            pages = pool.map(lambda folder: bucket.page(folder, folders=True), batch)
            for folder, page in zip(batch, pages, strict=True):
                kinds = table_kinds(bucket, folder, page) if tables else set()
                if kinds:
                    kinds_by_folder[folder] = kinds
                elif page.token:
                    # The first page of a large folder is not representative of the rest.
                    bounds.update(_flat_bounds(bucket, folder, "", parts))
                else:
                    bounds.update(f"{folder_prefix}{AFTER_ALL}" for folder_prefix in page.folders)
                    queue.extend(
                        folder_prefix
                        for folder_prefix in page.folders
                        if not has_hidden_part(folder, folder_prefix)
                    )
        if tables:
            # A range that starts or ends inside a table may not contain its log.
            divided_folders = sorted(_folders_containing(prefix, bounds) - visited)[:parts]
            kinds_of_divided = pool.map(
                lambda folder: table_kinds(bucket, folder, None), divided_folders
            )
            kinds_by_folder.update(
                {
                    key: kinds
                    for key, kinds in zip(divided_folders, kinds_of_divided, strict=True)
                    if kinds
                }
            )
    roots = tuple(kinds_by_folder)
    return KeyDivision({bound for bound in bounds if not bound.startswith(roots)}, kinds_by_folder)


def table_kinds(bucket: ObjectBucket, folder: str, page: ObjectPage | None) -> set[TableKind]:
    """The kinds of tables whose log is in a folder.

    If `page` contains all folders in it, no requests are sent for them.
    """
    is_complete = page is not None and not page.token
    folders = set(page.folders) if page is not None else set()

    def has_log_folder(name: str) -> bool:
        log = f"{folder}{name}/"
        return log in folders or (not is_complete and bool(bucket.page(log, limit=1).entries))

    kinds = {kind for name, kind in LOG_FOLDERS.items() if has_log_folder(name)}
    metadata = f"{folder}{METADATA_FOLDER}/"
    if metadata in folders or not is_complete:
        # Metadata files start with a number or with `v`; all manifests sort between them.
        pages = (bucket.page(metadata, after=f"{metadata}{start}") for start in ("0", "v"))
        names = (entry.key[len(metadata) :] for page in pages for entry in page.entries)
        kinds |= {"iceberg"} if any(map(is_iceberg, names)) else set()
    return kinds


def _folders_containing(prefix: str, bounds: Iterable[str]) -> set[str]:
    """The folders below a prefix that contain a bound."""
    return {
        bound[: len(prefix) + slash.end()]
        for bound in bounds
        for slash in re.finditer("/", bound[len(prefix) :])
    }


def _flat_bounds(bucket: ObjectBucket, prefix: str, after: str, parts: int) -> list[str]:
    def find_first(key_prefix: str, key_after: str) -> str | None:
        entries = bucket.page(key_prefix, after=key_after, limit=1).entries
        return entries[0].key if entries else None

    def is_small(key_prefix: str, key_after: str) -> bool:
        return not bucket.page(key_prefix, after=key_after).token

    return key_bounds(find_first, is_small, prefix, after=after, parts=parts)


def range_pages(
    bucket: ObjectBucket, prefix: str, after: str, until: str, *, deep: bool, tables: bool
) -> Iterator[ObjectPage]:
    """The pages of a key range; a large range is divided and listed concurrently."""
    if deep and tables:
        pages = _pages_without_tables(bucket, prefix, after)
    else:
        pages = bucket.pages(prefix, after=after, folders=not deep)
    last_key = after
    for page in islice(pages, _MAX_SEQUENTIAL_PAGES):
        yield from _stop_at([page], until)
        last_key = max(last_key, page.last)
        if not page.token or (until and last_key > until):
            return
    bounds = _flat_bounds(bucket, prefix, last_key, _CONCURRENCY) if deep else []
    yield from _interleave(
        [
            _stop_at(
                _pages_without_tables(bucket, prefix, start)
                if deep and tables
                else bucket.pages(prefix, after=start, folders=not deep),
                end,
            )
            for start, end in ranges_between(bounds, after=last_key, until=until)
        ]
    )


def _pages_without_tables(bucket: ObjectBucket, prefix: str, after: str) -> Iterator[ObjectPage]:
    """Yield the pages after a key, except pages that only contain files of one table."""
    start: str | None = after
    while start is not None:
        pages, start = bucket.pages(prefix, after=start), None
        for page in pages:
            yield page
            end = _end_of_table(prefix, page)
            if page.token and end > page.last:
                start = end
                break


def _end_of_table(prefix: str, page: ObjectPage) -> str:
    """The end of the keys of the last table on the page; empty if the page has no file of a log."""
    roots = (table_root_in(entry.key[len(prefix) :]) for entry in reversed(page.entries))
    table_root = next(filter(None, roots), None)
    if table_root is None:
        return ""
    return f"{prefix}{table_root.root}/{AFTER_ALL}" if table_root.root else f"{prefix}{AFTER_ALL}"


def _stop_at(pages: Iterable[ObjectPage], until: str) -> Iterator[ObjectPage]:
    for page in pages:
        if until and page.last > until:
            yield page._replace(entries=[entry for entry in page.entries if entry.key <= until])
            return
        yield page


def _interleave(streams: list[Iterator[ObjectPage]]) -> Iterator[ObjectPage]:
    """Yield the pages of several ranges; reads one page of each at a time, to limit memory."""
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        while streams:
            pages = list(pool.map(lambda pages: next(pages, None), streams))
            yield from (page for page in pages if page is not None)
            streams = [
                stream for stream, page in zip(streams, pages, strict=True) if page is not None
            ]
