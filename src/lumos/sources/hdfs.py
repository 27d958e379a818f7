"""Folders of a Hadoop file system."""

import logging
from functools import cached_property
from typing import ClassVar, Final

from lumos.config.sources import HdfsSourceSettings as HdfsSettings
from lumos.model.urn import Urn
from lumos.sources.addresses import authority_of, hdfs_access, root_of
from lumos.sources.buckets import INTERACTIVE_RETRIES
from lumos.sources.interface import LakeSource, SourceNotUsable, file_selection
from lumos.storage import FileSelection
from lumos.storage.errors import (
    NoCredentials,
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
from lumos.storage.hdfs import HdfsAccess, HdfsStorage
from lumos.storage.hdfs.client import LOGIN_REQUIRED
from lumos.storage.hdfs.kerberos import with_token
from lumos.storage.hdfs.storage import SCHEME

_LOG_IN: Final = "Set 'kerberos: true' after kinit, or set a delegation 'token'."
_log = logging.getLogger(__name__)


class HdfsSource(LakeSource):
    """One root for each path; datasets are named by the file system and their path in it."""

    kind: ClassVar[str] = "hdfs"

    _settings: HdfsSettings

    def roots(self) -> tuple[FileSelection, ...]:
        """The roots to scan; roots with problems are logged unless all have problems."""
        problems = self.problems()
        if len(problems) == len(self._roots):
            raise next(iter(problems.values()))
        for problem in problems.values():
            _log.warning("%s", problem)
        return tuple(file_selection(self._settings, root, self._access) for root in self._roots)

    def problems(self) -> dict[str, SourceNotUsable]:
        return self._problems_by_root

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            [segment for segment in path.removeprefix(SCHEME).split("/") if segment],
            instance=self.instance,
            environment=environment,
        )

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        roots = tuple(dict.fromkeys(root_of(self._settings, path) for path in self._settings.paths))
        if any(root.startswith(f"{SCHEME}/") or root == SCHEME for root in roots):
            found = "A source of type hdfs has no name node."
            step = (
                "Set 'url' to its WebHDFS address (http://namenode:9870), or set HADOOP_CONF_DIR."
            )
            raise SourceNotUsable(found, step)
        settings, own_authority = self._settings, authority_of(self._settings)
        other_roots = [
            root for root in roots if root.removeprefix(SCHEME).partition("/")[0] != own_authority
        ]
        if other_roots and (settings.urls or settings.token or settings.kerberos):
            found = f"{other_roots[0]} is not in the file system of the source, '{own_authority}'"
            step = "Configure a separate source for it."
            raise SourceNotUsable(f"{found}.", step)
        return roots

    @cached_property
    def _access(self) -> HdfsAccess:
        access = hdfs_access(self._settings)
        try:
            return with_token(access, self._roots[0].removeprefix(SCHEME).partition("/")[0])
        except StorageFault as problem:
            raise self._explain(problem, self._roots[0]) from None

    @cached_property
    def _problems_by_root(self) -> dict[str, SourceNotUsable]:
        """The problems of unusable roots."""
        storage = HdfsStorage(self._access, retries=INTERACTIVE_RETRIES)
        problems: dict[str, SourceNotUsable] = {}
        for root in self._roots:
            authority, _, path = root.removeprefix(SCHEME).partition("/")
            try:
                if storage.client(authority).status(f"/{path}").is_folder:
                    storage.client(authority).children(f"/{path}")
            except StorageUnreachable as problem:
                # All roots of a source have the same name nodes.
                raise self._explain(problem, root) from None
            except StorageFault as problem:
                problems[root] = self._explain(problem, root)
        return problems

    def _explain(self, problem: StorageFault, root: str) -> SourceNotUsable:
        match problem:
            case NoCredentials():
                return SourceNotUsable(f"There are no credentials for {root}: {problem}.", "")
            case StorageMissing():
                return SourceNotUsable(f"There is nothing at {root}.", "Check the path.")
            case StorageDenied(code=code) if code == LOGIN_REQUIRED:
                return SourceNotUsable(f"{root} requires a login: {problem}.", _LOG_IN)
            case StorageDenied(code="InvalidToken"):
                found = f"The token for {root} was rejected: {problem}."
                return SourceNotUsable(found, "Get a new one; tokens expire after a day or a week.")
            case StorageDenied():
                found = f"No permission to list {root}: {problem}."
                return SourceNotUsable(found, "Grant the user read and execute on the folder.")
            case StorageUnreachable():
                step = "Check 'url': the address of WebHDFS, such as http://namenode:9870."
                return SourceNotUsable(f"{problem}.", step)
            case StorageBusy():
                found = f"The file system is not available for {root}: {problem}."
                return SourceNotUsable(found, "Try again when it is active and not in safe mode.")
            case _:
                step = "Check 'url': use the address of WebHDFS, not of the file system."
                return SourceNotUsable(f"{root} cannot be listed: {problem}.", step)
