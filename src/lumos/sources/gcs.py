"""Buckets of Google Cloud Storage."""

from typing import ClassVar

from lumos.config.sources import GcsSource as Settings
from lumos.model.urn import Urn
from lumos.sources.interface import LakeSource, SourceNotUsable
from lumos.storage import Selection


class GcsSource(LakeSource):
    kind: ClassVar[str] = "gcs"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.instance = settings.instance

    def roots(self) -> tuple[Selection, ...]:
        raise SourceNotUsable("This version cannot scan 'gcs'.", "Leave the source out.")

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            path.removeprefix("gs://").split("/"),
            instance=self.instance,
            environment=environment,
        )
