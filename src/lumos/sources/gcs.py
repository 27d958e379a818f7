"""Buckets of Google Cloud Storage."""

from collections.abc import Mapping
from typing import ClassVar

from lumos.config.sources import GcsSourceSettings as GcsSettings
from lumos.model.urn import Urn
from lumos.sources.buckets import INTERACTIVE_RETRIES, BucketSource
from lumos.sources.interface import SourceNotUsable
from lumos.storage.errors import StorageUnreachable
from lumos.storage.gcs import GcsAccess, GcsStorage
from lumos.storage.gcs.storage import GcsBucket


class GcsSource(BucketSource[GcsSettings, GcsBucket]):
    kind: ClassVar[str] = "gcs"
    log_in = (
        "Set GOOGLE_APPLICATION_CREDENTIALS, run 'gcloud auth application-default login', or give "
        "the source of the type gcs in lumos.yaml a 'credentials_file', or 'anonymous: true' for a "
        "public bucket."
    )
    grant = "Grant the role Storage Object Viewer (roles/storage.objectViewer) on the bucket."
    steps: ClassVar[Mapping[str, str]] = {
        "UserProjectMissing": "The requester pays. Set 'project' to the project to bill.",
        "authError": "Check the credentials, and that their account still exists.",
        "required": "Check the credentials, and that their account still exists.",
    }

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            # Keep empty segments: `a//b` and `a/b` are different keys, unlike paths of folders.
            path.removeprefix("gs://").split("/"),
            instance=self.instance,
            environment=environment,
        )

    def _storage(self) -> GcsStorage:
        return GcsStorage(GcsAccess.of(self._settings), retries=INTERACTIVE_RETRIES)

    def _listing_command(self, bucket: str) -> str:
        return f"gcloud storage ls gs://{bucket}/"

    @property
    def _service(self) -> str:
        return self._settings.endpoint_url or "Google Cloud Storage"

    def _missing_bucket(self, root: str) -> SourceNotUsable:
        name = root.removeprefix("gs://").partition("/")[0]
        return SourceNotUsable(
            f"There is no bucket '{name}' at {self._service}.", "Check the name of the bucket."
        )

    def _connection_step(self, problem: StorageUnreachable) -> str:  # noqa: ARG002
        return "Check 'endpoint_url' and the network."
