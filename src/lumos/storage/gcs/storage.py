"""Buckets of Google as a storage."""

import os
from collections.abc import Mapping
from typing import ClassVar

from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.bucket import GcsBucket
from lumos.storage.gcs.credentials import GcsCredentials
from lumos.storage.http import Patience, Transport
from lumos.storage.objects.storage import ObjectStorage


class GcsStorage(ObjectStorage[GcsBucket]):
    """Paths are `gs://bucket/key`, the key as it is."""

    scheme: ClassVar[str] = "gs"
    right_to_list: ClassVar[str] = "storage.objects.list"

    def __init__(
        self,
        access: GcsAccess,
        *,
        environment: Mapping[str, str] = os.environ,
        patience: Patience = Patience(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__()
        self.access = access.settled(environment)
        self._patience = patience
        self._transport = Transport()
        self._credentials = GcsCredentials(self.access, self._transport, environment)

    def _new_bucket(self, name: str) -> GcsBucket:
        return GcsBucket(
            name,
            self.access,
            credentials=self._credentials,
            transport=self._transport,
            patience=self._patience,
        )
