"""Each store that Lumos reads, with a server of its own kind behind it."""

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from obstore.store import AzureStore

from azure_server import ACCOUNT, SAS, AzureServer
from azure_server import error as azure_error
from gcs_server import GcsServer
from gcs_server import told as google_says
from hdfs_server import TOKEN, HdfsServer
from hdfs_server import error as hdfs_error
from http_server import BROKEN_OFF, RecordingServer, Request, Response
from lumos.http.retries import RetryPolicy
from lumos.storage import FileStorage, LocalStorage
from lumos.storage.azure import AzureAccess, AzureStorage
from lumos.storage.azure.credentials import AzureRequest, SharedKey
from lumos.storage.gcs import GcsAccess, GcsStorage
from lumos.storage.hdfs import HdfsAccess, HdfsStorage
from lumos.storage.http import storage_http_client
from lumos.storage.interface import StorageAccess
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import S3Server, error
from servers.azurite import ACCOUNT as EMULATED
from servers.azurite import KEY as EMULATED_KEY

BRIEF = RetryPolicy(seconds=5, tries=4, first_wait=0.01, max_wait=0.05)
HUSH = "hush-hush"


class StorageFolder(ABC):
    """A folder in a store, and how to fill it."""

    root: str
    storage: FileStorage
    # How many files it is worth the time to fill it with.
    most: int = 1_000_000

    @abstractmethod
    def put(self, files: Mapping[str, bytes]) -> None: ...


class OnDisk(StorageFolder):
    def __init__(self, folder: Path) -> None:
        self.root = str(folder)
        self.storage = LocalStorage()
        folder.mkdir()

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            file = Path(self.root, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


class Served(StorageFolder):
    """A store behind a server, which may fail for a while."""

    server: RecordingServer
    access: StorageAccess
    # What its server says when it is busy, and to whom it does not know.
    busy: tuple[Response, ...]
    denied: Response

    def fail(self, response: Response, times: int = 1_000_000) -> None:
        """Answers so, and then as usual; who gives tokens stays well."""
        tries = count()
        self.server.answer = lambda request: (
            response if not self.is_login(request) and next(tries) < times else None
        )

    def is_login(self, request: Request) -> bool:
        return request.path == "/token"


_BUSY = (
    error(503, "SlowDown", "Please reduce your request rate"),
    error(429, "TooManyRequests", "Please reduce your request rate"),
    error(500, "InternalError", "We encountered an internal error"),
    BROKEN_OFF,
)


class InS3(Served):
    busy = _BUSY
    denied = error(403, "AccessDenied", f"Access Denied for {HUSH}")

    def __init__(self, made: ExitStack) -> None:
        self.root = "s3://lake/raw"
        self.server = made.enter_context(S3Server({"lake": {}}, keys={"key-id": HUSH}))
        self.access = S3Access(
            endpoint_url=self.server.url, access_key_id="key-id", secret_access_key=HUSH
        )
        self.storage = S3Storage(self.access, retries=BRIEF)

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.server.put("lake", f"raw/{name}", data)


class InGcs(Served):
    busy = (*_BUSY, google_says(503, "backendError", "Backend Error"))
    denied = error(403, "AccessDenied", "Access denied for ya29.hush-hush-1")

    def __init__(self, made: ExitStack) -> None:
        self.root = "gs://lake/raw"
        self.server = made.enter_context(GcsServer({"lake": {}}))
        self.access = GcsAccess(
            endpoint_url=self.server.url, credentials=self.server.account(private_key_id=HUSH)
        )
        self.storage = GcsStorage(self.access, retries=BRIEF)

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.server.put("lake", f"raw/{name}", data)


class InAzure(Served):
    busy = (
        azure_error(503, "ServerBusy", "The server is currently unable to receive requests."),
        azure_error(429, "TooManyRequests", "Too many requests"),
        azure_error(500, "OperationTimedOut", "The operation could not be completed in time."),
        BROKEN_OFF,
    )
    denied = azure_error(403, "AuthenticationFailed", f"Server failed with {SAS}.\nTime:2024")

    def __init__(self, made: ExitStack) -> None:
        self.root = f"abfss://lake@{ACCOUNT}.dfs.core.windows.net/raw"
        self.server = made.enter_context(AzureServer(page=500))
        self.access = AzureAccess(
            account=ACCOUNT, endpoint_url=self.server.endpoint, sas_token=f"?{SAS}"
        )
        self.storage = AzureStorage(self.access, retries=BRIEF)

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.server.containers["lake"][f"raw/{name}"] = data


class InHdfs(Served):
    busy = (
        hdfs_error(403, "RetriableException", "Zero blocklocations for /raw. Name node is in safe"),
        hdfs_error(503, "", ""),
        hdfs_error(429, "", ""),
        BROKEN_OFF,
    )
    denied = hdfs_error(
        403,
        "AccessControlException",
        f"Permission denied: user=lumos, access=READ, delegation={TOKEN}\n\tat org.apache.hadoop",
    )

    def __init__(self, made: ExitStack) -> None:
        self.root = "hdfs://cluster/lake/raw"
        self.server = made.enter_context(HdfsServer(page=700, secure=True))
        self.access = HdfsAccess(urls=(self.server.url,), nameservice="cluster", token=TOKEN)
        self.storage = HdfsStorage(self.access, retries=BRIEF)

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.server.put(f"/lake/raw/{name}", data)


class InFakeGcs(StorageFolder):
    """A bucket of its own on an emulator of Google's storage by others."""

    most = 60

    def __init__(self, url: str) -> None:
        name = f"t{uuid.uuid4().hex}"
        storage_http_client().send(
            "POST",
            f"{url}/storage/v1/b?project=lumos",
            headers=lambda: {"Content-Type": "application/json"},
            body=json.dumps({"name": name}).encode(),
        )
        self.section: dict[str, object] = {
            "type": "gcs", "bucket": name, "prefix": "raw", "endpoint_url": url, "anonymous": True,
        }  # fmt: skip
        self.root = f"gs://{name}/raw"
        access = GcsAccess(endpoint_url=url, anonymous=True)
        self.storage = GcsStorage(access, retries=BRIEF)

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.storage.write(f"{self.root}/{name}", data)


class InAzurite(StorageFolder):
    """A container of its own on Microsoft's emulator."""

    most = 60

    def __init__(self, endpoint: str) -> None:
        name = f"t{uuid.uuid4().hex}"
        url = f"{endpoint}/{name}?restype=container"
        headers = SharedKey(EMULATED, EMULATED_KEY).headers(AzureRequest("PUT", url, {}))
        storage_http_client().send("PUT", url, headers=lambda: {**headers, "Content-Length": "0"})
        access = AzureAccess(account=EMULATED, endpoint_url=endpoint, account_key=EMULATED_KEY)
        self.section: dict[str, object] = {
            "type": "azure", "container": name, "prefix": "raw", "account": EMULATED,
            "endpoint_url": endpoint, "account_key": EMULATED_KEY,
        }  # fmt: skip
        self.root = f"abfss://{name}@{EMULATED}.dfs.core.windows.net/raw"
        self.storage = AzureStorage(access, retries=BRIEF)
        self._blobs = AzureStore(
            name,
            account_name=EMULATED,
            access_key=EMULATED_KEY,
            endpoint=endpoint,
            client_options={"allow_http": True},
        )

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self._blobs.put(f"raw/{name}", data)


class InCluster(StorageFolder):
    """A folder of its own in a real Hadoop file system with two name nodes."""

    most = 60

    def __init__(self, urls: tuple[str, ...]) -> None:
        access = HdfsAccess(urls=urls, nameservice="cluster", user="root")
        folder = f"/{uuid.uuid4().hex}"
        self.section: dict[str, object] = {
            "type": "hdfs", "path": folder, "urls": list(urls), "nameservice": "cluster",
            "user": "root",
        }  # fmt: skip
        self.root = f"hdfs://cluster{folder}"
        self.storage = HdfsStorage(access, environment={}, retries=BRIEF)

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.storage.write(f"{self.root}/{name}", data)


SERVED = {"s3": InS3, "gcs": InGcs, "azure": InAzure, "hdfs": InHdfs}
