"""Stores of objects as a storage."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import ClassVar, Final, Generic, TypeVar

from lumos.storage.errors import StorageFault
from lumos.storage.interface import (
    FileStorage,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    ReadableFile,
    TableRoot,
)
from lumos.storage.objects.bucket import (
    AFTER_ALL,
    ObjectBucket,
    ObjectEntry,
    ObjectFile,
    ObjectPage,
)
from lumos.storage.objects.key_ranges import (
    folder_bounds,
    is_below_hidden,
    range_pages,
    ranges_between,
    stable_sample,
    table_kinds,
)
from lumos.storage.table_roots import table_root_in

# What Hadoop leaves behind for a folder.
_FOLDER_MARKERS: Final = ("/", "_$folder$")
# The error code of S3 for a wrong clock.
_SKEWED: Final = "RequestTimeTooSkewed"

AnyBucket = TypeVar("AnyBucket", bound=ObjectBucket)


class ObjectStorage(FileStorage, Generic[AnyBucket]):
    """Paths are `scheme://bucket/key`, the key as it is."""

    concurrency: ClassVar[int] = 32
    scheme: ClassVar[str]
    # The permission to list, as the store names it.
    right_to_list: ClassVar[str]

    def __init__(self) -> None:
        self._buckets: dict[str, AnyBucket] = {}

    @abstractmethod
    def _new_bucket(self, name: str) -> AnyBucket:
        """A bucket as this access reaches it; sends no request."""

    def bucket(self, name: str) -> AnyBucket:
        """The bucket of that name, which remembers its region and connections."""
        return self._buckets.setdefault(name, self._new_bucket(name))

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[ListingItem], list[KeyRange]]:
        bucket, prefix = self._bucket_and_prefix(root)
        try:
            page = bucket.page(prefix, folders=not deep)
            if not page.entries and not page.folders and prefix:
                # The root is no folder; it may be the key of a single file.
                page = bucket.page(prefix.removesuffix("/"), limit=1)
                is_file = page.entries and page.entries[0].key == prefix.removesuffix("/")
                return [self._listed(bucket, page.entries[0])] if is_file else [], []
            if not page.token:
                return list(self._items_in(bucket, prefix, [page], deep=deep, tables=tables)), []
            if not deep:
                return [], [KeyRange(root, deep=False)]
            divided = folder_bounds(bucket, prefix, 2 * parts, tables=tables)
        except StorageFault as problem:
            return [self._unlisted(root, problem)], []
        # Files of a table need not be listed.
        within = {(key, key + AFTER_ALL) for key in divided.tables}
        bounds = {*stable_sample(divided.bounds, 4 * parts), *chain.from_iterable(within)}
        ranges = ranges_between(sorted(bounds), after="", until="")
        path = self._path(bucket, "")
        markers = [
            TableRoot(path + key.removesuffix("/"), kind)
            for key, kinds in divided.tables.items()
            for kind in sorted(kinds)
        ]
        if prefix in divided.tables:
            return [*markers], []
        return [*markers], [
            KeyRange(root, after and path + after, until and path + until)
            for after, until in ranges
            if (after, until) not in within
        ]

    def walk(self, key_range: KeyRange, *, tables: bool = True) -> Iterator[ListingItem]:
        bucket, prefix = self._bucket_and_prefix(key_range.folder)
        path = self._path(bucket, "")
        after, until = (bound[len(path) :] for bound in (key_range.after, key_range.until))
        deep = key_range.deep
        try:
            pages = range_pages(bucket, prefix, after, until, deep=deep, tables=tables)
            yield from self._items_in(bucket, prefix, pages, deep=deep, tables=tables)
        except StorageFault as problem:
            yield self._unlisted(key_range.folder, problem)

    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[ListedFile]:
        bucket, prefix = self._bucket_and_prefix(folder)
        later = after and prefix + after
        passed_over = tuple(f"{prefix}{name}/" for name in without)
        for page in bucket.pages(prefix, after=later, folders=not deep):
            for entry in page.entries:
                is_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
                is_passed_over = is_marker or entry.key.startswith(passed_over)
                if entry.key > later and not is_passed_over:
                    yield self._listed(bucket, entry)

    def exists(self, path: str) -> bool:
        bucket, key = self._bucket_and_key(path)
        # Listing needs no permission to read, and answers for archived objects too.
        found = (entry.key for page in bucket.pages(key) for entry in page.entries)
        return next(found, None) == key

    @contextmanager
    def open(self, path: str, *, size: int | None = None) -> Iterator[ReadableFile]:
        bucket, key = self._bucket_and_key(path)
        yield ObjectFile(bucket, key, size)

    def write(self, path: str, data: bytes) -> None:
        bucket, key = self._bucket_and_key(path)
        bucket.put(key, data)

    def read(self, path: str) -> bytes:
        bucket, key = self._bucket_and_key(path)
        return bucket.get(key).data

    def files(self, folder: str) -> list[str]:
        bucket, prefix = self._bucket_and_prefix(folder)
        return [
            entry.key[len(prefix) :]
            for page in bucket.pages(prefix, folders=True)
            for entry in page.entries
        ]

    def discard(self, paths: Sequence[str]) -> None:
        by_bucket: dict[AnyBucket, list[str]] = {}
        for path in paths:
            bucket, key = self._bucket_and_key(path)
            by_bucket.setdefault(bucket, []).append(key)
        for bucket, keys in by_bucket.items():
            bucket.delete(keys)

    def _bucket_and_key(self, path: str) -> tuple[AnyBucket, str]:
        name, _, key = path.removeprefix(f"{self.scheme}://").partition("/")
        return self.bucket(name), key

    def _bucket_and_prefix(self, folder: str) -> tuple[AnyBucket, str]:
        """A folder's bucket, and the beginning that all keys in it have."""
        bucket, key = self._bucket_and_key(folder)
        return bucket, f"{key}/" if key else ""

    def _path(self, bucket: AnyBucket, key: str) -> str:
        return f"{self.scheme}://{bucket.name}/{key}"

    def _items_in(
        self,
        bucket: AnyBucket,
        prefix: str,
        pages: Iterable[ObjectPage],
        *,
        deep: bool,
        tables: bool,
    ) -> Iterator[ListingItem]:
        reported: set[TableRoot] = set()
        for page in pages:
            if tables and not deep:
                for kind in sorted(table_kinds(bucket, prefix, page._replace(token=""))):
                    yield TableRoot(self._path(bucket, prefix).removesuffix("/"), kind)
            for entry in page.entries:
                met = table_root_in(entry.key[len(prefix) :]) if tables and deep else None
                if met is not None:
                    root = f"{prefix}{met.root}".removesuffix("/")
                    marker = TableRoot(self._path(bucket, root).removesuffix("/"), met.kind)
                    if marker not in reported:
                        reported.add(marker)
                        yield marker
                    continue
                is_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
                if not is_marker and not is_below_hidden(prefix, entry.key):
                    yield self._listed(bucket, entry)

    def _listed(self, bucket: AnyBucket, entry: ObjectEntry) -> ListedFile:
        return ListedFile(self._path(bucket, entry.key), *entry[1:])

    def _unlisted(self, folder: str, problem: StorageFault) -> ListingProblem:
        if problem.code == _SKEWED:
            reason = f"It could not be listed, set this machine's clock: {problem}."
        elif isinstance(problem, PermissionError):
            reason = f"No permission to list it; grant {self.right_to_list}: {problem}."
        else:
            reason = f"It could not be listed: {problem}."
        return ListingProblem(folder, problem.problem_code, reason)
