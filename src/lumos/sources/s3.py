"""Buckets of Amazon S3 and compatible stores."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec.structs import replace

from lumos.config.sources import S3SourceSettings as S3Settings
from lumos.model.urn import Urn
from lumos.sources.buckets import INTERACTIVE_RETRIES, BucketSource
from lumos.sources.interface import SourceNotUsable
from lumos.storage import StorageAccess
from lumos.storage.errors import StorageUnreachable
from lumos.storage.objects.storage import ObjectStorage
from lumos.storage.s3 import S3Access, S3Storage
from lumos.storage.s3.storage import S3Bucket


class S3Source(BucketSource[S3Settings, S3Bucket]):
    kind: ClassVar[str] = "s3"
    log_in = (
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the source of the type s3 in "
        "lumos.yaml a 'profile', keys, or 'anonymous: true' for a public bucket."
    )
    grant = "Grant s3:ListBucket on the bucket and s3:GetObject on its objects."
    steps: ClassVar[Mapping[str, str]] = {
        "InvalidAccessKeyId": "Check the access key, and that it belongs to this endpoint.",
        "SignatureDoesNotMatch": "Check the secret access key.",
        "ExpiredToken": "The session has ended; log in again for new credentials.",
        "InvalidToken": "The session token does not belong to the key; take both from one login.",
        "RequestTimeTooSkewed": "Set the clock of this machine.",
    }

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            # Keep empty segments: `a//b` and `a/b` are different keys, unlike paths of folders.
            path.removeprefix("s3://").split("/"),
            instance=self.instance,
            environment=environment,
        )

    def _storage(self) -> S3Storage:
        return S3Storage(S3Access.of(self._settings), retries=INTERACTIVE_RETRIES)

    def _access(self, storage: ObjectStorage[S3Bucket], bucket: S3Bucket) -> StorageAccess:
        # The bucket may lie in another region than the configured one.
        assert isinstance(storage, S3Storage)
        return replace(storage.access, region=bucket.region)

    def _listing_command(self, bucket: str) -> str:
        return f"aws s3 ls s3://{bucket}/"

    @property
    def _service(self) -> str:
        return S3Access.of(self._settings).resolve().endpoint_url or "Amazon S3"

    def _missing_bucket(self, root: str) -> SourceNotUsable:
        name = root.removeprefix("s3://").partition("/")[0]
        step = "Check its name and, for other vendors, 'endpoint_url'."
        return SourceNotUsable(f"There is no bucket '{name}' at {self._service}.", step)

    def _connection_step(self, problem: StorageUnreachable) -> str:
        if "certificate" in str(problem).lower():
            return "Set AWS_CA_BUNDLE to a file with the CA certificate of the server."
        return "Check 'endpoint_url', the network, and that the server is running."
