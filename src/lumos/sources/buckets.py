"""Common base class of sources with buckets."""

import logging
from abc import abstractmethod
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

from lumos.config.sources import ObjectStoreSettings
from lumos.http.retries import RetryPolicy
from lumos.sources.interface import LakeSource, SourceNotUsable, hints_of
from lumos.storage import FileSelection, StorageAccess
from lumos.storage.errors import NoCredentials, StorageFault, StorageUnreachable
from lumos.storage.objects.storage import AnyBucket, ObjectStorage
from lumos.storage.tokens import NO_LIBRARY

# Few retries: a user is waiting, and retries do not help with a wrong URL.
INTERACTIVE_RETRIES: Final = RetryPolicy(seconds=10, tries=3)
_log = logging.getLogger(__name__)

Settings = TypeVar("Settings", bound=ObjectStoreSettings)


class _CheckedRoot(NamedTuple):
    root: str
    access: StorageAccess
    problem: SourceNotUsable | None


class BucketSource(LakeSource, Generic[Settings, AnyBucket]):
    """One root for each bucket and prefix."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.instance = settings.instance

    @abstractmethod
    def _storage(self) -> ObjectStorage[AnyBucket]:
        """The storage, with few retries because a user is waiting."""

    @abstractmethod
    def _access(self, storage: ObjectStorage[AnyBucket], bucket: AnyBucket) -> StorageAccess:
        """The access to a checked bucket for executors."""

    @abstractmethod
    def _explain(self, problem: StorageFault, root: str) -> SourceNotUsable:
        """The error for a bucket that cannot be listed, with the next step."""

    @abstractmethod
    def _listing_command(self, bucket: str) -> str:
        """The command of the vendor that lists a bucket."""

    def roots(self) -> tuple[FileSelection, ...]:
        """The roots to scan; roots with problems are logged unless all have problems."""
        problems = list(self.problems().values())
        if len(problems) == len(self._checked_roots):
            raise problems[0]
        for problem in problems:
            _log.warning("%s", problem)
        settings = self._settings
        return tuple(
            FileSelection(
                checked.root,
                settings.file_patterns,
                settings.exclude,
                settings.recursive,
                checked.access,
                hints_of(settings.datasets),
                join_similar=settings.join_similar,
            )
            for checked in self._checked_roots
        )

    def problems(self) -> dict[str, SourceNotUsable]:
        return {
            checked.root: checked.problem
            for checked in self._checked_roots
            if checked.problem is not None
        }

    @cached_property
    def _checked_roots(self) -> list[_CheckedRoot]:
        try:
            storage = self._storage()
        except NoCredentials as problem:
            raise SourceNotUsable(
                f"There are no credentials for {self._title()}: {problem}.",
                "Repair the file, or set another one in the source.",
            ) from None
        return [
            self._check_root(storage, bucket, prefix.removesuffix("/"))
            for bucket in self._names()
            for prefix in self._settings.prefixes or ("",)
        ]

    def _title(self, root: str = "") -> str:
        """The name of the source, or of one of its roots, in messages."""
        name = f"the {self.kind} source '{self._settings.name}'" if self._settings.name else ""
        return f"{root} ({name})" if root and name else root or name or f"a {self.kind} source"

    def _no_credentials(self, problem: NoCredentials, root: str, log_in: str) -> SourceNotUsable:
        """The error for missing or unusable credentials."""
        if problem.code == "NoCredentials":
            return SourceNotUsable(f"No credentials for {self._title(root)} were found.", log_in)
        if problem.code == NO_LIBRARY:
            return SourceNotUsable(f"No static keys for {self._title(root)}; {problem}", "")
        found = f"There are no credentials for {self._title(root)}: {problem}."
        # Some messages already contain the command to run.
        return SourceNotUsable(found, "" if "run: " in str(problem) else log_in)

    def _names(self) -> tuple[str, ...]:
        """The names of the buckets in paths."""
        return self._settings.buckets

    def _check_root(
        self, storage: ObjectStorage[AnyBucket], name: str, prefix: str
    ) -> _CheckedRoot:
        """Check a root."""
        root = f"{storage.scheme}://{name}/{prefix}".removesuffix("/")
        bucket = storage.bucket(name)
        problem: SourceNotUsable | None = None
        try:
            first = bucket.page(f"{prefix}/" if prefix else "", limit=1).entries
            similar = bucket.page(prefix, limit=1).entries if prefix and not first else []
            if prefix and not first and not any(entry.key == prefix for entry in similar):
                nearest_key = similar[0].key if similar else ""
                problem = self._missing_prefix(storage, root, name, prefix, nearest_key)
        except StorageUnreachable as error:
            # All roots of a source have the same endpoint, so the others would fail too.
            raise self._explain(error, root) from None
        except StorageFault as error:
            problem = self._explain(error, root)
        return _CheckedRoot(root, self._access(storage, bucket), problem)

    def _missing_prefix(
        self,
        storage: ObjectStorage[AnyBucket],
        root: str,
        bucket: str,
        prefix: str,
        nearest_key: str,
    ) -> SourceNotUsable:
        found = f"There is nothing at {root}/."
        if not nearest_key:
            return SourceNotUsable(
                found, f"Check the prefix; '{self._listing_command(bucket)}' lists prefixes."
            )
        folder = "/".join(nearest_key.split("/")[: prefix.count("/") + 1])
        suggestion = f"{storage.scheme}://{bucket}/{folder}"
        return SourceNotUsable(found, f"A prefix is a folder; did you mean {suggestion}?")
