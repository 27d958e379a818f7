"""Buckets as a storage."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar, Final

from lumos.storage.interface import (
    Listed,
    Listing,
    ReadableFile,
    Storage,
    Stretch,
    Unlisted,
    is_hidden,
)
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.bucket import Bucket, Entry, Page
from lumos.storage.s3.credentials import CredentialSource
from lumos.storage.s3.errors import S3Error
from lumos.storage.s3.file import S3File
from lumos.storage.s3.ranges import LAST, chosen, key_bounds, ranges_between
from lumos.storage.s3.transport import Patience, Transport

SCHEME: Final = "s3://"
_AT_ONCE: Final = 16
# A stretch that goes on after so many pages is worth the requests that divide it.
_PAGES_IN_A_ROW: Final = 20
# What Hadoop leaves behind for a folder.
_FOLDER_MARKERS: Final = ("/", "_$folder$")


class S3Storage(Storage):
    """Paths are `s3://bucket/key`, the key as it is."""

    concurrency: ClassVar[int] = 32

    def __init__(
        self,
        access: S3Access,
        *,
        environment: Mapping[str, str] = os.environ,
        patience: Patience = Patience(),  # noqa: B008 - it is frozen
    ) -> None:
        self.access = access.settled(environment)
        self._patience = patience
        self._transport = Transport()
        self._credentials = CredentialSource(self.access, self._transport, environment)
        self._buckets: dict[str, Bucket] = {}

    def bucket(self, name: str) -> Bucket:
        """A bucket as this access reaches it."""
        return self._buckets.setdefault(
            name,
            Bucket(
                name,
                self.access,
                credentials=self._credentials,
                transport=self._transport,
                patience=self._patience,
            ),
        )

    def split(
        self, root: str, *, parts: int, deep: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
        bucket, prefix = self._place(root)
        try:
            page = bucket.page(prefix, folders=not deep)
            if not page.entries and not page.folders and prefix:
                # The root is no folder; it may be the key of a single file.
                page = bucket.page(prefix.removesuffix("/"), limit=1)
                is_file = page.entries and page.entries[0].key == prefix.removesuffix("/")
                return [_listed(bucket, page.entries[0])] if is_file else [], []
            if not page.token:
                return list(_of_page(bucket, prefix, page.entries)), []
            bounds = _folder_bounds(bucket, prefix, 2 * parts) if deep else set()
        except S3Error as problem:
            return [_unlisted(root, problem)], []
        ranges = ranges_between(chosen(bounds, 4 * parts), after="", until="")
        path = f"{SCHEME}{bucket.name}/"
        return [], [
            Stretch(root, after and path + after, until and path + until, deep)
            for after, until in ranges
        ]

    def walk(self, stretch: Stretch) -> Iterator[Listing]:
        bucket, prefix = self._place(stretch.folder)
        path = f"{SCHEME}{bucket.name}/"
        after, until = (bound[len(path) :] for bound in (stretch.after, stretch.until))
        try:
            for page in _range_pages(bucket, prefix, after, until, deep=stretch.deep):
                yield from _of_page(bucket, prefix, page.entries)
        except S3Error as problem:
            yield _unlisted(stretch.folder, problem)

    @contextmanager
    def open(self, path: str, *, size: int | None = None) -> Iterator[ReadableFile]:
        bucket, key = self._key(path)
        yield S3File(bucket, key, size)

    def write(self, path: str, data: bytes) -> None:
        bucket, key = self._key(path)
        bucket.put(key, data)

    def read(self, path: str) -> bytes:
        bucket, key = self._key(path)
        return bucket.get(key).data

    def files(self, folder: str) -> list[str]:
        bucket, prefix = self._place(folder)
        return [
            entry.key[len(prefix) :]
            for page in bucket.pages(prefix, folders=True)
            for entry in page.entries
        ]

    def discard(self, paths: Sequence[str]) -> None:
        by_bucket: dict[Bucket, list[str]] = {}
        for path in paths:
            bucket, key = self._key(path)
            by_bucket.setdefault(bucket, []).append(key)
        for bucket, keys in by_bucket.items():
            bucket.delete(keys)

    def _key(self, path: str) -> tuple[Bucket, str]:
        name, _, key = path.removeprefix(SCHEME).partition("/")
        return self.bucket(name), key

    def _place(self, folder: str) -> tuple[Bucket, str]:
        """A folder's bucket, and the beginning that all keys in it have."""
        bucket, key = self._key(folder)
        return bucket, f"{key}/" if key else ""


def _folder_bounds(bucket: Bucket, prefix: str, parts: int) -> set[str]:
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
                waiting.extend(below for below in page.folders if not _is_hidden(folder, below))
    return bounds


def _flat_bounds(bucket: Bucket, prefix: str, after: str, parts: int) -> list[str]:
    def first(below: str, later: str) -> str | None:
        found = bucket.page(below, after=later, limit=1).entries
        return found[0].key if found else None

    def is_small(below: str, later: str) -> bool:
        return not bucket.page(below, after=later).token

    return key_bounds(first, is_small, prefix, after=after, parts=parts)


def _range_pages(
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


def _of_page(bucket: Bucket, prefix: str, entries: Iterable[Entry]) -> Iterator[Listing]:
    for entry in entries:
        is_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
        if not is_marker and not _is_hidden(prefix, entry.key):
            yield _listed(bucket, entry)


def _is_hidden(prefix: str, key: str) -> bool:
    return any(map(is_hidden, key[len(prefix) :].split("/")))


def _listed(bucket: Bucket, entry: Entry) -> Listed:
    return Listed(f"{SCHEME}{bucket.name}/{entry.key}", *entry[1:])


def _unlisted(folder: str, problem: S3Error) -> Unlisted:
    if isinstance(problem, PermissionError):
        reason = f"No permission to list it; grant s3:ListBucket: {problem}."
    else:
        reason = f"It could not be listed: {problem}."
    return Unlisted(folder, problem.problem_code, reason)
