"""Lists, reads and writes the files in object stores."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import ClassVar, Final, Generic, TypeVar

from lumos.http.client import CA_BUNDLE
from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault
from lumos.storage.http import storage_http_client
from lumos.storage.interface import (
    FileStorage,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    ReadableFile,
    StorageAccess,
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
    has_hidden_part,
    range_pages,
    ranges_between,
    stable_sample,
    table_kinds,
)
from lumos.storage.table_roots import table_root_in

# Hadoop creates empty objects with these endings for folders.
_FOLDER_MARKERS: Final = ("/", "_$folder$")
# The error code of S3 for a wrong clock.
_CLOCK_SKEW: Final = "RequestTimeTooSkewed"

AnyBucket = TypeVar("AnyBucket", bound=ObjectBucket)


class ObjectStorage(FileStorage, Generic[AnyBucket]):
    """Paths are `scheme://bucket/key`; keys are not encoded."""

    concurrency: ClassVar[int] = 32
    scheme: ClassVar[str]
    # The name of the vendor's permission to list objects.
    list_permission: ClassVar[str]
    # The environment variable that names a CA bundle.
    ca_variable: ClassVar[str] = CA_BUNDLE

    def __init__(self, access: StorageAccess, retries: RetryPolicy) -> None:
        self.access = access
        self._retries = retries
        self._http = storage_http_client(self.ca_variable)
        self._buckets: dict[str, AnyBucket] = {}

    @abstractmethod
    def _new_bucket(self, name: str) -> AnyBucket:
        """Create a bucket; sends no request."""

    def bucket(self, name: str) -> AnyBucket:
        """The bucket of this name, with its region and connections."""
        return self._buckets.setdefault(name, self._new_bucket(name))

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[ListingItem], list[KeyRange]]:
        bucket, prefix = self._bucket_and_prefix(root)
        try:
            page = bucket.page(prefix, folders=not deep)
            if not page.entries and not page.folders and prefix:
                # The root is not a folder; it may be the key of a single file.
                page = bucket.page(prefix.removesuffix("/"), limit=1)
                is_file = page.entries and page.entries[0].key == prefix.removesuffix("/")
                return [self._to_listed_file(bucket, page.entries[0])] if is_file else [], []
            if not page.token:
                return list(self._items_in(bucket, prefix, [page], deep=deep, tables=tables)), []
            if not deep:
                return [], [KeyRange(root, deep=False)]
            division = folder_bounds(bucket, prefix, 2 * parts, tables=tables)
        except StorageFault as problem:
            return [self._listing_problem(root, problem)], []
        # The files of tables are not listed, because the logs of the tables list them.
        table_ranges = {(key, key + AFTER_ALL) for key in division.tables}
        bounds = {*stable_sample(division.bounds, 4 * parts), *chain.from_iterable(table_ranges)}
        ranges = ranges_between(sorted(bounds), after="", until="")
        path = self._path(bucket, "")
        roots = [
            TableRoot(path + key.removesuffix("/"), kind)
            for key, kinds in division.tables.items()
            for kind in sorted(kinds)
        ]
        if prefix in division.tables:
            return [*roots], []
        return [*roots], [
            KeyRange(root, after and path + after, until and path + until)
            for after, until in ranges
            if (after, until) not in table_ranges
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
            yield self._listing_problem(key_range.folder, problem)

    def entries(
        self,
        folder: str,
        *,
        after: str = "",
        deep: bool = False,
        excluded_folders: Collection[str] = (),
    ) -> Iterator[ListedFile]:
        bucket, prefix = self._bucket_and_prefix(folder)
        start = after and prefix + after
        excluded = tuple(f"{prefix}{name}/" for name in excluded_folders)
        for page in bucket.pages(prefix, after=start, folders=not deep):
            for entry in page.entries:
                is_folder_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
                is_excluded = is_folder_marker or entry.key.startswith(excluded)
                if entry.key > start and not is_excluded:
                    yield self._to_listed_file(bucket, entry)

    def exists(self, path: str) -> bool:
        bucket, key = self._bucket_and_key(path)
        # List it, since this requires no permission to read, and finds archived objects, too.
        keys = (entry.key for page in bucket.pages(key) for entry in page.entries)
        return next(keys, None) == key

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
        """The bucket of a folder, and the prefix of all keys in it."""
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
        reported_roots: set[TableRoot] = set()
        for page in pages:
            if tables and not deep:
                for kind in sorted(table_kinds(bucket, prefix, page._replace(token=""))):
                    yield TableRoot(self._path(bucket, prefix).removesuffix("/"), kind)
            for entry in page.entries:
                table_root = table_root_in(entry.key[len(prefix) :]) if tables and deep else None
                if table_root is not None:
                    key = f"{prefix}{table_root.root}".removesuffix("/")
                    root = TableRoot(self._path(bucket, key).removesuffix("/"), table_root.kind)
                    if root not in reported_roots:
                        reported_roots.add(root)
                        yield root
                    continue
                is_folder_marker = entry.size == 0 and entry.key.endswith(_FOLDER_MARKERS)
                if not is_folder_marker and not has_hidden_part(prefix, entry.key):
                    yield self._to_listed_file(bucket, entry)

    def _to_listed_file(self, bucket: AnyBucket, entry: ObjectEntry) -> ListedFile:
        return ListedFile(self._path(bucket, entry.key), *entry[1:])

    def _listing_problem(self, folder: str, problem: StorageFault) -> ListingProblem:
        if problem.code == _CLOCK_SKEW:
            reason = f"It could not be listed ({problem}); set the clock of this machine."
        elif isinstance(problem, PermissionError):
            reason = f"No permission to list it ({problem}); grant {self.list_permission}."
        else:
            reason = f"It could not be listed: {problem}."
        return ListingProblem(folder, problem.problem_code, reason)
