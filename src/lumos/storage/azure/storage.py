"""Azure containers as a storage: listed by Lumos, read and written by obstore."""

from collections.abc import Collection, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote, unquote, urlencode
from xml.etree import ElementTree

from obstore.store import AzureStore

from lumos.http.client import MAX_RESPONSE_BYTES, HttpResponse
from lumos.http.retries import RetryPolicy
from lumos.storage.azure.access import AzureAccess, ContainerAddress
from lumos.storage.azure.credentials import AzureCredentials, AzureRequest, SasToken
from lumos.storage.errors import StorageFault, error_from_response
from lumos.storage.http import STORAGE_RETRIES
from lumos.storage.interface import (
    MAX_ITEMS_IN_SPLIT,
    KeyRange,
    ListedFile,
    ListingItem,
    TableRoot,
    divide_folders,
)
from lumos.storage.objects.bucket import (
    PAGE_SIZE,
    ByteStore,
    ObjectBucket,
    ObjectEntry,
    ObjectPage,
    client_options,
    plain_etag,
)
from lumos.storage.objects.key_ranges import has_hidden_part
from lumos.storage.objects.storage import ObjectStorage
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg

# Azure bills each request, and allows larger pages than other vendors.
_MAX_PAGE_SIZE: Final = 5000


class AzureContainer(ObjectBucket):
    """A container of Azure Blob Storage.

    Azure cannot start a listing at a given key, and accounts with hierarchical namespaces do not
    list keys in order, so this class relies on neither.
    """

    supports_suffix_ranges: ClassVar[bool] = False

    _access: AzureAccess
    _credentials: AzureCredentials

    def __init__(self, container: ContainerAddress, *arguments: Any, **options: Any) -> None:
        super().__init__(container.authority, *arguments, **options)
        self._container = container

    def page(
        self,
        prefix: str,
        *,
        after: str = "",
        token: str = "",
        folders: bool = False,
        limit: int = PAGE_SIZE,
    ) -> ObjectPage:
        """A page of the blobs whose names start with a prefix and sort after a text."""
        query = {
            "restype": "container",
            "comp": "list",
            # Some writers mark folders only in the metadata.
            "include": "metadata",
            "maxresults": str(_MAX_PAGE_SIZE if limit == PAGE_SIZE else limit),
            **({"prefix": prefix} if prefix else {}),
            **({"delimiter": "/"} if folders else {}),
        }
        while True:
            with self._breaker.guard():
                response = self._request(
                    "", query={**query, **({"marker": token} if token else {})}
                )
            page = _page(response.body)
            entries = [entry for entry in page.entries if entry.key > after]
            # A page may be empty even if more pages follow.
            if entries or page.folders or not page.token:
                return page._replace(entries=entries)
            token = page.token

    def _request(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> HttpResponse:
        response = self._send("GET", key, query=query, headers=headers)
        if response.status not in (200, 206):
            raise self._without_secrets(error_from_response(response.status, response.body))
        return response

    def put(self, key: str, data: bytes) -> None:
        if not self._leaks_on_redirect():
            super().put(key, data)
            return
        headers = {"x-ms-blob-type": "BlockBlob"}
        response = self._send("PUT", key, headers=headers, body=data)
        if response.status != 201:
            raise self._without_secrets(error_from_response(response.status, response.body))

    def _leaks_on_redirect(self) -> bool:
        # The SAS token is part of the URL, which is sent as the referrer after a redirect.
        return isinstance(self._credentials.current(), SasToken)

    def delete(self, keys: list[str]) -> None:
        # One request per blob, since not all accounts support batches.
        self._delete_each(self._remove, keys)

    def _remove(self, key: str) -> None:
        response = self._send("DELETE", key)
        if response.status not in (200, 202, 204, 404):
            raise self._without_secrets(error_from_response(response.status, response.body))

    def _send(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> HttpResponse:
        name = self._container.name
        path = quote(f"/{name}/{key}" if key else f"/{name}", safe="/-._~")
        query_string = f"?{urlencode(query, quote_via=quote)}" if query else ""
        url = f"{self._access.account_url(self._container)}{path}{query_string}"
        auth = self._credentials.current()
        return self._http.send(
            method,
            auth.authenticate_url(url),
            headers=partial(auth.headers, AzureRequest(method, url, headers)),
            body=body,
            retries=self._retries,
            max_bytes=None if key else MAX_RESPONSE_BYTES,
        )

    def _new_store(self) -> ByteStore:
        return AzureStore(
            self._container.name,
            account_name=self._container.account,
            endpoint=self._access.account_url(self._container),
            use_emulator=False,
            use_fabric_endpoint=False,
            skip_signature=self._access.anonymous,
            credential_provider=lambda: self._credentials.current().for_obstore(),
            client_options=client_options(),
            retry_config=self._obstore_retries(),
        )


def _page(body: bytes) -> ObjectPage:
    try:
        root = ElementTree.fromstring(body)
        if root.tag != "EnumerationResults":
            raise ValueError(root.tag)
        entries = [_entry(node) for node in root.iter("Blob") if not _is_folder(node)]
    except (ElementTree.ParseError, ValueError) as problem:
        raise StorageFault("the response is not from Azure") from problem
    folders = [_name(node) for node in root.iter("BlobPrefix")]
    return ObjectPage(entries, folders, root.findtext("NextMarker") or "")


def _entry(node: ElementTree.Element) -> ObjectEntry:
    return ObjectEntry(
        _name(node),
        int(node.findtext("Properties/Content-Length") or 0),
        _microseconds(node.findtext("Properties/Last-Modified", "")),
        plain_etag(node.findtext("Properties/Etag", "")),
        node.findtext("Properties/AccessTier", "").lower(),
    )


def _is_folder(node: ElementTree.Element) -> bool:
    kind = node.findtext("Properties/ResourceType", "")
    folder_flag = next(
        (item.text for item in node.iterfind("Metadata/*") if item.tag.lower() == "hdi_isfolder"),
        "",
    )
    return kind == "directory" or (folder_flag or "").lower() == "true"


def _name(node: ElementTree.Element) -> str:
    name = node.find("Name")
    if name is None:
        raise ValueError("a blob without a name")
    text = name.text or ""
    # Names that XML cannot represent are encoded.
    return unquote(text) if name.get("Encoded") == "true" else text


@lru_cache(maxsize=10_000)
def _microseconds(text: str) -> int:
    return int(parsedate_to_datetime(text).timestamp()) * 1_000_000


_CONCURRENCY: Final = 16


class _Folder(NamedTuple):
    """The blobs, subfolders and table roots of a folder."""

    entries: list[ObjectEntry]
    subfolders: list[str]
    roots: list[ListingItem]


class AzureStorage(ObjectStorage[AzureContainer]):
    """Paths are `abfss://container@account.dfs.core.windows.net/key`; keys are not encoded.

    A root is divided by folders, since Azure cannot start a listing at a given key.
    """

    scheme: ClassVar[str] = "abfss"
    list_permission: ClassVar[str] = "the role Storage Blob Data Reader"

    access: AzureAccess

    def __init__(self, access: AzureAccess, *, retries: RetryPolicy = STORAGE_RETRIES) -> None:
        super().__init__(access.resolve(), retries)
        self._credentials: dict[str, AzureCredentials] = {}

    def _new_bucket(self, name: str) -> AzureContainer:
        container = ContainerAddress.parse(name) or self.access.container(name)
        access = self.access.for_container(container)
        credentials = self._credentials.setdefault(
            container.account_url,
            AzureCredentials(access.with_keys(), container.account),
        )
        return AzureContainer(
            container, access, credentials, http_client=self._http, retries=self._retries
        )

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[ListingItem], list[KeyRange]]:
        bucket, prefix = self._bucket_and_prefix(root)
        try:
            page = bucket.page(prefix, folders=True)
            if not page.entries and not page.folders and prefix:
                return self._single_file(bucket, prefix.removesuffix("/")), []
            if not deep:
                return [], [KeyRange(root, deep=False)]

            def scan(path: str) -> tuple[list[ListingItem], list[str]]:
                _, folder_prefix = self._bucket_and_prefix(path)
                folder = self._folder(bucket, folder_prefix, tables=tables)
                if folder.roots:
                    return folder.roots, []
                if len(folder.entries) > MAX_ITEMS_IN_SPLIT:
                    files = [self._to_listed_file(bucket, each) for each in folder.entries]
                    return [*files], folder.subfolders
                page = ObjectPage(folder.entries, [], "")
                items = self._items_in(bucket, folder_prefix, [page], deep=True, tables=False)
                return list(items), folder.subfolders

            return divide_folders(root, scan, parts=parts, concurrency=_CONCURRENCY)
        except StorageFault as problem:
            return [self._listing_problem(root, problem)], []

    def walk(self, key_range: KeyRange, *, tables: bool = True) -> Iterator[ListingItem]:
        bucket, prefix = self._bucket_and_prefix(key_range.folder)
        deep = key_range.deep
        try:
            pages = bucket.pages(prefix, folders=not deep)
            yield from self._items_in(bucket, prefix, pages, deep=deep, tables=tables and deep)
            if tables and not deep:
                yield from self._folder(bucket, prefix, tables=True).roots
        except StorageFault as problem:
            yield self._listing_problem(key_range.folder, problem)

    def entries(
        self,
        folder: str,
        *,
        after: str = "",
        deep: bool = False,
        excluded_folders: Collection[str] = (),
    ) -> Iterator[ListedFile]:
        yield from sorted(
            super().entries(folder, after=after, deep=deep, excluded_folders=excluded_folders)
        )

    def files(self, folder: str) -> list[str]:
        return sorted(super().files(folder))

    def _single_file(self, bucket: AzureContainer, key: str) -> list[ListingItem]:
        """The blob whose key is the root, if it exists."""
        entries = (entry for page in bucket.pages(key, folders=True) for entry in page.entries)
        blob = next((entry for entry in entries if entry.key == key), None)
        return [] if blob is None else [self._to_listed_file(bucket, blob)]

    def _folder(self, bucket: AzureContainer, prefix: str, *, tables: bool) -> _Folder:
        entries: list[ObjectEntry] = []
        folders: list[str] = []
        for page in bucket.pages(prefix, folders=True):
            # The blobs of a large folder are listed by a separate task.
            entries += page.entries if len(entries) <= MAX_ITEMS_IN_SPLIT else ()
            folders += page.folders
        folder_path = self._folder_path(bucket, prefix)
        names = {folder[len(prefix) : -1] for folder in folders}
        roots: list[ListingItem] = []
        if tables:
            roots += [
                TableRoot(folder_path, kind) for name, kind in LOG_FOLDERS.items() if name in names
            ]
            if METADATA_FOLDER in names and self._is_iceberg(bucket, f"{prefix}{METADATA_FOLDER}/"):
                roots.append(TableRoot(folder_path, "iceberg"))
        subfolders = [
            self._folder_path(bucket, folder)
            for folder in folders
            if not has_hidden_part(prefix, folder)
        ]
        return _Folder(entries, subfolders, roots)

    def _is_iceberg(self, bucket: AzureContainer, metadata: str) -> bool:
        pages = bucket.pages(metadata, folders=True)
        return any(
            is_iceberg(entry.key[len(metadata) :]) for page in pages for entry in page.entries
        )

    def _folder_path(self, bucket: AzureContainer, prefix: str) -> str:
        return self._path(bucket, prefix).removesuffix("/")
