"""Whoever is sent elsewhere by a store takes no login there."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from azure_server import ACCOUNT, SAS, AzureServer
from http_server import RecordingServer, Request, Response
from lumos.storage import FileStorage
from lumos.storage.azure import AzureAccess, AzureStorage
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import S3Server
from storage_folders import BRIEF

FOUND = {"ETag": '"x"', "Last-Modified": "Tue, 14 Nov 2023 22:13:20 GMT"}


class Elsewhere(RecordingServer):
    def respond(self, request: Request) -> Response:
        return Response(200, b"foreign" if request.method == "GET" else b"", FOUND)


@pytest.fixture(params=["azure", "s3"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[FileStorage, str, RecordingServer]]:
    """A storage whose login could be seen elsewhere, a folder in it, and its server."""
    storage: FileStorage
    with ExitStack() as made:
        if request.param == "azure":
            azure = made.enter_context(AzureServer({"lake": {"a.csv": b"data"}}))
            storage = AzureStorage(
                AzureAccess(account=ACCOUNT, endpoint_url=azure.endpoint, sas_token=SAS),
                retries=BRIEF,
            )
            yield storage, f"abfss://lake@{ACCOUNT}.dfs.core.windows.net", azure
        else:
            s3 = made.enter_context(S3Server({"lake": {}}, keys={"key-id": "hush-hush"}))
            s3.put("lake", "a.csv", b"data")
            access = S3Access(
                endpoint_url=s3.url,
                access_key_id="key-id",
                secret_access_key="hush-hush",
                session_token="hush-session",
            )
            storage = S3Storage(access, retries=BRIEF)
            yield storage, "s3://lake", s3


def test_objects_are_read_written_and_removed(
    place: tuple[FileStorage, str, RecordingServer],
) -> None:
    storage, root, _ = place
    assert storage.read(f"{root}/a.csv") == b"data"
    with storage.open(f"{root}/a.csv", size=4) as file:
        assert (file.head(2), file.tail(2)) == (b"da", b"ta")
    storage.write(f"{root}/state/b ü+.csv", b"more")
    storage.write(f"{root}/state/empty", b"")
    assert storage.read(f"{root}/state/b ü+.csv") == b"more"
    assert sorted(storage.files(f"{root}/state")) == ["b ü+.csv", "empty"]
    storage.discard([f"{root}/state/b ü+.csv", f"{root}/state/gone"])
    assert storage.files(f"{root}/state") == ["empty"]
    with pytest.raises(FileNotFoundError):
        storage.read(f"{root}/gone.csv")


def test_nobody_elsewhere_is_asked(place: tuple[FileStorage, str, RecordingServer]) -> None:
    storage, root, server = place
    with Elsewhere() as elsewhere:
        # By another name, as another host has.
        there = f"{elsewhere.url.replace('127.0.0.1', 'localhost')}/foreign"
        server.answer = lambda _request: Response(307, b"", {"Location": there})  # type: ignore[attr-defined]
        for act in (
            lambda: storage.read(f"{root}/a.csv"),
            lambda: storage.write(f"{root}/b.csv", b"more"),
            lambda: storage.discard([f"{root}/a.csv"]),
        ):
            with pytest.raises(OSError, match="status 307"):
                act()
        assert elsewhere.requests == []
