"""Buckets of S3 as a storage."""

import os
from collections.abc import Mapping
from typing import ClassVar

from lumos.storage.http import Patience, Transport
from lumos.storage.objects.storage import ObjectStorage
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.bucket import S3Bucket
from lumos.storage.s3.credentials import CredentialSource


class S3Storage(ObjectStorage[S3Bucket]):
    """Paths are `s3://bucket/key`, the key as it is."""

    scheme: ClassVar[str] = "s3"
    right_to_list: ClassVar[str] = "s3:ListBucket"

    def __init__(
        self,
        access: S3Access,
        *,
        environment: Mapping[str, str] = os.environ,
        patience: Patience = Patience(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__()
        self.access = access.settled(environment)
        self._patience = patience
        self._transport = Transport("AWS_CA_BUNDLE")
        self._credentials = CredentialSource(self.access, self._transport, environment)

    def _new_bucket(self, name: str) -> S3Bucket:
        return S3Bucket(
            name,
            self.access,
            credentials=self._credentials,
            transport=self._transport,
            patience=self._patience,
        )
