"""Stores of objects as a storage."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import ClassVar, Final, Generic, TypeVar

from lumos.storage.errors import StorageFault
from lumos.storage.interface import (
    Listed,
    Listing,
    Marker,
    ReadableFile,
    Storage,
    Stretch,
    Unlisted,
)
from lumos.storage.markers import marker_in
from lumos.storage.objects.bucket import Bucket, Entry, Page
from lumos.storage.objects.file import ObjectFile
from lumos.storage.objects.ranges import LAST, chosen, ranges_between
from lumos.storage.objects.splitting import folder_bounds, is_below_hidden, kinds_of, range_pages

# What Hadoop leaves behind for a folder.
_FOLDER_MARKERS: Final = ("/", "_$folder$")
# What S3 and its kin say to a signature of another time.
_SKEWED: Final = "RequestTimeTooSkewed"

AnyBucket = TypeVar("AnyBucket", bound=Bucket)


class ObjectStorage(Storage, Generic[AnyBucket]):
    """Paths are `scheme://bucket/key`, the key as it is."""

    concurrency: ClassVar[int] = 32
    scheme: ClassVar[str]
    # What lets one list, in the words of the store.
    right_to_list: ClassVar[str]

    def __init__(self) -> None:
        self._buckets: dict[str, AnyBucket] = {}

    @abstractmethod
    def _new_bucket(self, name: str) -> AnyBucket:
        """A bucket as this access reaches it; asks nobody."""

    def bucket(self, name: str) -> AnyBucket:
        """The bucket of that name, which keeps what was learnt of it."""
        return self._buckets.setdefault(name, self._new_bucket(name))

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
        bucket, prefix = self._place(root)
        try:
            page = bucket.page(prefix, folders=not deep)
            if not page.entries and not page.folders and prefix:
                # The root is no folder; it may be the key of a single file.
                page = bucket.page(prefix.removesuffix("/"), limit=1)
                is_file = page.entries and page.entries[0].key == prefix.removesuffix("/")
                return [self._listed(bucket, page.entries[0])] if is_file else [], []
            if not page.token:
                return list(self._of_pages(bucket, prefix, [page], deep=deep, tables=tables)), []
            if not deep:
                return [], [Stretch(root, deep=False)]
            divided = folder_bounds(bucket, prefix, 2 * parts, tables=tables)
        except StorageFault as problem:
            return [self._unlisted(root, problem)], []
        # Of what lies in a table, nothing needs to be listed.
        within = {(key, key + LAST) for key in divided.tables}
        bounds = {*chosen(divided.bounds, 4 * parts), *chain.from_iterable(within)}
        ranges = ranges_between(sorted(bounds), after="", until="")
        path = self._path(bucket, "")
        markers = [
            Marker(path + key.removesuffix("/"), kind)
            for key, kinds in divided.tables.items()
            for kind in sorted(kinds)
        ]
        if prefix in divided.tables:
            return [*markers], []
        return [*markers], [
            Stretch(root, after and path + after, until and path + until)
            for after, until in ranges
            if (after, until) not in within
        ]

    def walk(self, stretch: Stretch, *, tables: bool = True) -> Iterator[Listing]:
        bucket, prefix = self._place(stretch.folder)
        path = self._path(bucket, "")
        after, until = (bound[len(path) :] for bound in (stretch.after, stretch.until))
        deep = stretch.deep
        try:
            pages = range_pages(bucket, prefix, after, until, deep=deep, tables=tables)
            yield from self._of_pages(bucket, prefix, pages, deep=deep, tables=tables)
        except StorageFault as problem:
            yield self._unlisted(stretch.folder, problem)

    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[Listed]:
        bucket, prefix = self._place(folder)
        later = after and prefix + after
        passed_over = tuple(f"{prefix}{name}/" for name in without)
        for page in bucket.pages(prefix, after=later, folders=not deep):
            for entry in page.entries:
                is_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
                is_passed_over = is_marker or entry.key.startswith(passed_over)
                if entry.key > later and not is_passed_over:
                    yield self._listed(bucket, entry)

    def exists(self, path: str) -> bool:
        bucket, key = self._key(path)
        # Listing needs no permission to read, and answers for archived objects too.
        found = (entry.key for page in bucket.pages(key) for entry in page.entries)
        return next(found, None) == key

    @contextmanager
    def open(self, path: str, *, size: int | None = None) -> Iterator[ReadableFile]:
        bucket, key = self._key(path)
        yield ObjectFile(bucket, key, size)

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
        by_bucket: dict[AnyBucket, list[str]] = {}
        for path in paths:
            bucket, key = self._key(path)
            by_bucket.setdefault(bucket, []).append(key)
        for bucket, keys in by_bucket.items():
            bucket.delete(keys)

    def _key(self, path: str) -> tuple[AnyBucket, str]:
        name, _, key = path.removeprefix(f"{self.scheme}://").partition("/")
        return self.bucket(name), key

    def _place(self, folder: str) -> tuple[AnyBucket, str]:
        """A folder's bucket, and the beginning that all keys in it have."""
        bucket, key = self._key(folder)
        return bucket, f"{key}/" if key else ""

    def _path(self, bucket: AnyBucket, key: str) -> str:
        return f"{self.scheme}://{bucket.name}/{key}"

    def _of_pages(
        self, bucket: AnyBucket, prefix: str, pages: Iterable[Page], *, deep: bool, tables: bool
    ) -> Iterator[Listing]:
        told: set[Marker] = set()
        for page in pages:
            if tables and not deep:
                for kind in sorted(kinds_of(bucket, prefix, page._replace(token=""))):
                    yield Marker(self._path(bucket, prefix).removesuffix("/"), kind)
            for entry in page.entries:
                met = marker_in(entry.key[len(prefix) :]) if tables and deep else None
                if met is not None:
                    root = f"{prefix}{met.root}".removesuffix("/")
                    marker = Marker(self._path(bucket, root).removesuffix("/"), met.kind)
                    if marker not in told:
                        told.add(marker)
                        yield marker
                    continue
                is_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
                if not is_marker and not is_below_hidden(prefix, entry.key):
                    yield self._listed(bucket, entry)

    def _listed(self, bucket: AnyBucket, entry: Entry) -> Listed:
        return Listed(self._path(bucket, entry.key), *entry[1:])

    def _unlisted(self, folder: str, problem: StorageFault) -> Unlisted:
        if problem.code == _SKEWED:
            reason = f"It could not be listed, set this machine's clock: {problem}."
        elif isinstance(problem, PermissionError):
            reason = f"No permission to list it; grant {self.right_to_list}: {problem}."
        else:
            reason = f"It could not be listed: {problem}."
        return Unlisted(folder, problem.problem_code, reason)
