"""A MongoDB server as a source."""

from typing import ClassVar

from lumos.config.sources import MongodbSource as Settings
from lumos.model.discovery import Discovery
from lumos.model.urn import Urn
from lumos.sources.interface import SourceNotUsable, TableSource, Watch


class MongodbSource(TableSource):
    kind: ClassVar[str] = "mongodb"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.instance = settings.instance

    @property
    def address(self) -> str:
        return "mongodb"

    @property
    def scope(self) -> str:
        return ""

    def check(self) -> str:
        raise _not_yet()

    def read(self, watch: Watch) -> Discovery:  # noqa: ARG002
        raise _not_yet()

    def covers(self, path: str) -> bool:  # noqa: ARG002
        return False

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(self.kind, path.split("/"), instance=self.instance, environment=environment)


def _not_yet() -> SourceNotUsable:
    return SourceNotUsable("This version cannot scan 'mongodb'.", "Leave the source out.")
