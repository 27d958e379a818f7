"""The base class of sources with buckets, such as S3."""

import logging
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

from lumos.config.sources import ObjectStoreSettings
from lumos.http.retries import RetryPolicy
from lumos.sources.interface import LakeSource, SourceNotUsable, file_selection
from lumos.storage import FileSelection, StorageAccess
from lumos.storage.errors import (
    NoCredentials,
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
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

    # Next steps in messages: without credentials, without permission, and by error code.
    log_in: ClassVar[str]
    grant: ClassVar[str]
    steps: ClassVar[Mapping[str, str]]

    _settings: Settings

    @abstractmethod
    def _storage(self) -> ObjectStorage[AnyBucket]:
        """The storage, with few retries because a user is waiting."""

    @property
    @abstractmethod
    def _service(self) -> str:
        """The service or account in messages."""

    @abstractmethod
    def _missing_bucket(self, root: str) -> SourceNotUsable:
        """The error for a bucket that does not exist."""

    @abstractmethod
    def _connection_step(self, problem: StorageUnreachable) -> str:
        """What to check if the storage cannot be reached."""

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
        return tuple(
            file_selection(self._settings, checked.root, checked.access)
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

    def _access(self, storage: ObjectStorage[AnyBucket], bucket: AnyBucket) -> StorageAccess:  # noqa: ARG002
        """The access to a checked bucket for executors."""
        return storage.access

    def _explain(self, problem: StorageFault, root: str) -> SourceNotUsable:
        """The error for a bucket that cannot be listed, with the next step."""
        match problem:
            case NoCredentials(code="NoCredentials"):
                found = f"No credentials for {self._title(root)} were found."
                return SourceNotUsable(found, self.log_in)
            case NoCredentials(code=code) if code == NO_LIBRARY:
                return SourceNotUsable(f"No static keys for {self._title(root)}; {problem}", "")
            case NoCredentials():
                found = f"There are no credentials for {self._title(root)}: {problem}."
                # Some messages already contain the command to run.
                return SourceNotUsable(found, "" if "run: " in str(problem) else self.log_in)
            case StorageMissing():
                return self._missing_bucket(root)
            case StorageDenied():
                found = f"No permission to list {root}: {problem}."
                return SourceNotUsable(found, self.steps.get(problem.code, self.grant))
            case StorageUnreachable():
                return SourceNotUsable(f"{problem}.", self._connection_step(problem))
            case StorageBusy():
                found = f"{self._service} is throttling requests for {root}: {problem}."
                return SourceNotUsable(found, "Try again in a few minutes.")
            case _:
                step = self.steps.get(problem.code, "Check the source.")
                return SourceNotUsable(f"{root} cannot be listed: {problem}.", step)

    def _names(self) -> tuple[str, ...]:
        """The names of the buckets in paths."""
        return self._settings.buckets

    def _check_root(
        self, storage: ObjectStorage[AnyBucket], name: str, prefix: str
    ) -> _CheckedRoot:
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
