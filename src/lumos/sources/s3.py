"""Buckets of Amazon S3, or of whatever speaks its protocol."""

import logging
from functools import cached_property
from typing import ClassVar, Final, NamedTuple

import msgspec

from lumos.config.sources import S3Source as S3Settings
from lumos.model.urn import Urn
from lumos.sources.interface import LakeSource, SourceNotUsable, hints_of
from lumos.storage import Selection
from lumos.storage.errors import (
    NoCredentials,
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
from lumos.storage.http import Patience
from lumos.storage.s3 import S3Access, S3Storage

# Somebody waits for the answer, and a wrong address does not get better.
_WHILE_SOMEBODY_WAITS: Final = Patience(seconds=10, tries=3)
SCHEME: Final = "s3://"
_log = logging.getLogger(__name__)


class S3Source(LakeSource):
    kind: ClassVar[str] = "s3"

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self.instance = settings.instance

    def roots(self) -> tuple[Selection, ...]:
        """One root for each bucket and prefix.

        Where some of them cannot be used and others can, the scan goes on and reports it.
        """
        problems = list(self.problems().values())
        if len(problems) == len(self._looks):
            raise problems[0]
        for problem in problems:
            _log.warning("%s", problem)
        settings = self._settings
        return tuple(
            Selection(
                look.root,
                settings.file_patterns,
                settings.exclude,
                settings.recursive,
                look.access,
                hints_of(settings.datasets),
            )
            for look in self._looks
        )

    def problems(self) -> dict[str, SourceNotUsable]:
        return {look.root: look.problem for look in self._looks if look.problem is not None}

    @cached_property
    def _looks(self) -> "list[_Look]":
        settings = self._settings
        try:
            storage = S3Storage(S3Access.of(settings), patience=_WHILE_SOMEBODY_WAITS)
        except NoCredentials as problem:
            raise SourceNotUsable(f"{problem}.", "Repair the file, or name another one.") from None
        return [
            _looked_at(storage, bucket, prefix.removesuffix("/"))
            for bucket in settings.buckets
            for prefix in settings.prefixes or ("",)
        ]

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            # Unlike a folder, a key with an empty part is another key.
            path.removeprefix(SCHEME).split("/"),
            instance=self.instance,
            environment=environment,
        )


class _Look(NamedTuple):
    root: str
    access: S3Access
    problem: SourceNotUsable | None


def _looked_at(storage: S3Storage, bucket: str, prefix: str) -> _Look:
    """A root, with the region in which its bucket turned out to lie, and what is wrong with it."""
    root = f"{SCHEME}{bucket}/{prefix}" if prefix else f"{SCHEME}{bucket}"
    opened = storage.bucket(bucket)
    problem: SourceNotUsable | None = None
    try:
        first = opened.page(f"{prefix}/" if prefix else "", limit=1).entries
        beside = opened.page(prefix, limit=1).entries if prefix and not first else []
        if prefix and not first and not any(entry.key == prefix for entry in beside):
            problem = _nothing_at(root, bucket, prefix, beside[0].key if beside else "")
    except StorageUnreachable as silent:
        # All roots of a source have the same endpoint, and waiting for each helps nobody.
        raise _in_words(silent, root, storage) from None
    except StorageFault as refused:
        problem = _in_words(refused, root, storage)
    access = msgspec.structs.replace(storage.access, region=opened.region)
    return _Look(root, access, problem)


def _nothing_at(root: str, bucket: str, prefix: str, near: str) -> SourceNotUsable:
    found = f"There is nothing at {root}/."
    if not near:
        return SourceNotUsable(found, f"Check the prefix; 'aws s3 ls s3://{bucket}/' shows some.")
    folder = "/".join(near.split("/")[: prefix.count("/") + 1])
    return SourceNotUsable(found, f"A prefix is a folder; did you mean {SCHEME}{bucket}/{folder}?")


_STEPS: Final = {
    "InvalidAccessKeyId": "Check the access key, and that it belongs to this endpoint.",
    "SignatureDoesNotMatch": "Check the secret access key.",
    "ExpiredToken": "The session has ended; log in again for new credentials.",
    "InvalidToken": "The session token does not belong to the key; take both from one login.",
    "RequestTimeTooSkewed": "Set this machine's clock.",
}
_GRANT: Final = "Grant s3:ListBucket on the bucket and s3:GetObject on its objects."
_LOG_IN: Final = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a 'profile' or keys in the "
    "configuration, or 'anonymous: true' for a public bucket."
)


def _in_words(problem: StorageFault, root: str, storage: S3Storage) -> SourceNotUsable:
    where = storage.access.endpoint_url or "Amazon S3"
    match problem:
        case NoCredentials(code="NoCredentials"):
            return SourceNotUsable(f"No credentials for {root} were found.", _LOG_IN)
        case NoCredentials():
            return SourceNotUsable(f"There are no credentials for {root}: {problem}.", "")
        case StorageMissing():
            name = root.removeprefix(SCHEME).partition("/")[0]
            found = f"There is no bucket '{name}' at {where}."
            return SourceNotUsable(found, "Check its name and, for other makers, 'endpoint_url'.")
        case StorageDenied():
            found = f"No permission to list {root}: {problem}."
            return SourceNotUsable(found, _STEPS.get(problem.code, _GRANT))
        case StorageUnreachable():
            step = "Check 'endpoint_url', the network and that the server runs."
            if "certificate" in str(problem).lower():
                step = "Set AWS_CA_BUNDLE to a file with the certificate that signed its own."
            return SourceNotUsable(f"{problem}.", step)
        case StorageBusy():
            found = f"{where} refuses {root} for now: {problem}."
            return SourceNotUsable(found, "Try again in some minutes.")
        case _:
            return SourceNotUsable(f"{root} cannot be listed: {problem}.", "Check the source.")
