"""The common part of sources made of buckets."""

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

# A user waits, and retries do not repair a wrong URL.
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
        """The storage, with few retries, since a user waits."""

    @abstractmethod
    def _access(self, storage: ObjectStorage[AnyBucket], bucket: AnyBucket) -> StorageAccess:
        """How executors reach a bucket that was looked at."""

    @abstractmethod
    def _explain(self, problem: StorageFault, root: str) -> SourceNotUsable:
        """What to do about a bucket that cannot be listed."""

    @abstractmethod
    def _listing_command(self, bucket: str) -> str:
        """The command by which the maker's own program shows what is in a bucket."""

    def roots(self) -> tuple[FileSelection, ...]:
        """Where some roots cannot be used and others can, the scan goes on and reports it."""
        problems = list(self.problems().values())
        if len(problems) == len(self._checked_roots):
            raise problems[0]
        for problem in problems:
            _log.warning("%s", problem)
        settings = self._settings
        return tuple(
            FileSelection(
                look.root,
                settings.file_patterns,
                settings.exclude,
                settings.recursive,
                look.access,
                hints_of(settings.datasets),
                join_similar=settings.join_similar,
            )
            for look in self._checked_roots
        )

    def problems(self) -> dict[str, SourceNotUsable]:
        return {look.root: look.problem for look in self._checked_roots if look.problem is not None}

    @cached_property
    def _checked_roots(self) -> list[_CheckedRoot]:
        try:
            storage = self._storage()
        except NoCredentials as problem:
            raise SourceNotUsable(
                f"There are no credentials for {self._title()}: {problem}.",
                "Repair the file, or name another one in the source.",
            ) from None
        return [
            self._check_root(storage, bucket, prefix.removesuffix("/"))
            for bucket in self._names()
            for prefix in self._settings.prefixes or ("",)
        ]

    def _title(self, root: str = "") -> str:
        """What errors call the source, or a root of it: as lumos.yaml names it, if it does."""
        name = f"the {self.kind} source '{self._settings.name}'" if self._settings.name else ""
        return f"{root} ({name})" if root and name else root or name or f"a {self.kind} source"

    def _no_credentials(self, problem: NoCredentials, root: str, log_in: str) -> SourceNotUsable:
        """That nothing is known to log in with, or why it cannot be used."""
        if problem.code == "NoCredentials":
            return SourceNotUsable(f"No credentials for {self._title(root)} were found.", log_in)
        if problem.code == NO_LIBRARY:
            return SourceNotUsable(f"No static keys for {self._title(root)}; {problem}", "")
        found = f"There are no credentials for {self._title(root)}: {problem}."
        # Some problems say themselves which command helps.
        return SourceNotUsable(found, "" if "run: " in str(problem) else log_in)

    def _names(self) -> tuple[str, ...]:
        """The buckets, as paths name them."""
        return self._settings.buckets

    def _check_root(
        self, storage: ObjectStorage[AnyBucket], name: str, prefix: str
    ) -> _CheckedRoot:
        """A root, and what is wrong with it."""
        root = f"{storage.scheme}://{name}/{prefix}".removesuffix("/")
        bucket = storage.bucket(name)
        problem: SourceNotUsable | None = None
        try:
            first = bucket.page(f"{prefix}/" if prefix else "", limit=1).entries
            beside = bucket.page(prefix, limit=1).entries if prefix and not first else []
            if prefix and not first and not any(entry.key == prefix for entry in beside):
                near = beside[0].key if beside else ""
                problem = self._nothing_at(storage, root, name, prefix, near)
        except StorageUnreachable as silent:
            # All roots of a source have the same endpoint, and waiting for each helps nobody.
            raise self._explain(silent, root) from None
        except StorageFault as refused:
            problem = self._explain(refused, root)
        return _CheckedRoot(root, self._access(storage, bucket), problem)

    def _nothing_at(
        self, storage: ObjectStorage[AnyBucket], root: str, bucket: str, prefix: str, near: str
    ) -> SourceNotUsable:
        found = f"There is nothing at {root}/."
        if not near:
            return SourceNotUsable(
                found, f"Check the prefix; '{self._listing_command(bucket)}' shows some."
            )
        folder = "/".join(near.split("/")[: prefix.count("/") + 1])
        there = f"{storage.scheme}://{bucket}/{folder}"
        return SourceNotUsable(found, f"A prefix is a folder; did you mean {there}?")
