"""Buckets of Google Cloud Storage."""

from typing import ClassVar, Final

from lumos.config.sources import GcsSourceSettings as GcsSettings
from lumos.model.urn import Urn
from lumos.sources.buckets import INTERACTIVE_RETRIES, BucketSource
from lumos.sources.interface import SourceNotUsable
from lumos.storage import StorageAccess
from lumos.storage.errors import (
    NoCredentials,
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
from lumos.storage.gcs import GcsAccess, GcsStorage
from lumos.storage.gcs.storage import GcsBucket
from lumos.storage.objects.storage import ObjectStorage

_LOG_IN: Final = (
    "Set GOOGLE_APPLICATION_CREDENTIALS, run 'gcloud auth application-default login', or give the "
    "source of the type gcs in lumos.yaml a 'credentials_file', or 'anonymous: true' for a public "
    "bucket."
)
_GRANT: Final = "Grant the role Storage Object Viewer (roles/storage.objectViewer) on the bucket."
_STEPS: Final = {
    "UserProjectMissing": "The requester pays for this bucket. Set 'project' to the one to bill.",
    "authError": "Check the credentials, and that their account still exists.",
    "required": "Check the credentials, and that their account still exists.",
}


class GcsSource(BucketSource[GcsSettings, GcsBucket]):
    kind: ClassVar[str] = "gcs"

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            # Keep empty parts: unlike folders, keys with and without them differ.
            path.removeprefix("gs://").split("/"),
            instance=self.instance,
            environment=environment,
        )

    def _storage(self) -> GcsStorage:
        return GcsStorage(GcsAccess.of(self._settings), retries=INTERACTIVE_RETRIES)

    def _access(self, storage: ObjectStorage[GcsBucket], bucket: GcsBucket) -> StorageAccess:  # noqa: ARG002
        assert isinstance(storage, GcsStorage)
        return storage.access

    def _listing_command(self, bucket: str) -> str:
        return f"gcloud storage ls gs://{bucket}/"

    def _explain(self, problem: StorageFault, root: str) -> SourceNotUsable:
        service = self._settings.endpoint_url or "Google Cloud Storage"
        match problem:
            case NoCredentials():
                return self._no_credentials(problem, root, _LOG_IN)
            case StorageMissing():
                name = root.removeprefix("gs://").partition("/")[0]
                return SourceNotUsable(
                    f"There is no bucket '{name}' at {service}.", "Check its name."
                )
            case StorageDenied():
                found = f"No permission to list {root}: {problem}."
                return SourceNotUsable(found, _STEPS.get(problem.code, _GRANT))
            case StorageUnreachable():
                return SourceNotUsable(f"{problem}.", "Check 'endpoint_url' and the network.")
            case StorageBusy():
                found = f"{service} is throttling requests for {root}: {problem}."
                return SourceNotUsable(found, "Try again in a few minutes.")
            case _:
                step = _STEPS.get(problem.code, "Check the source.")
                return SourceNotUsable(f"{root} cannot be listed: {problem}.", step)
