"""Access to Google Cloud Storage, from the configuration and the environment."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Final, Self

from msgspec.structs import replace

from lumos.config.sources import GcsSourceSettings
from lumos.storage.interface import StorageAccess

_GOOGLE: Final = "https://storage.googleapis.com"


class GcsAccess(StorageAccess, frozen=True, kw_only=True):
    """Endpoint and credentials of buckets; empty values come from the environment.

    `project` is billed for requests to buckets whose requesters pay.
    """

    secret_fields: ClassVar[tuple[str, ...]] = ("credentials",)

    endpoint_url: str = ""
    project: str = ""
    credentials: str = ""
    credentials_file: str = ""
    anonymous: bool = False

    @classmethod
    def of(cls, source: GcsSourceSettings) -> Self:
        """The access for a section of the configuration; a readable key file is included."""
        text = source.credentials.reveal() if source.credentials else ""
        file = source.credentials_file or ""
        if file and not text:
            with suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as opened:
                text = opened.read()
        return cls(
            endpoint_url=source.endpoint_url or "",
            project=source.project or "",
            credentials=text,
            credentials_file=file,
            anonymous=source.anonymous,
        )

    def resolve(self, environment: Mapping[str, str] = os.environ) -> "GcsAccess":
        """The access with an endpoint; an emulator is accessed anonymously."""
        emulator = environment.get("STORAGE_EMULATOR_HOST", "")
        if self.endpoint_url or not emulator:
            return replace(self, endpoint_url=(self.endpoint_url or _GOOGLE).rstrip("/"))
        url = emulator if "://" in emulator else f"http://{emulator}"
        return replace(self, endpoint_url=url.rstrip("/"), anonymous=True)
