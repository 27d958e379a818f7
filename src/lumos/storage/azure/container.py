"""One container: pages of its blobs, asked for here, and their bytes, moved by obstore."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from types import MappingProxyType
from typing import ClassVar, Final
from urllib.parse import quote, unquote, urlencode
from xml.etree import ElementTree

from obstore.store import AzureStore

from lumos.storage.azure.access import AzureAccess, Container
from lumos.storage.azure.credentials import AzureCredentials
from lumos.storage.azure.signing import Asked, Sas
from lumos.storage.errors import StorageFault, error_of
from lumos.storage.http import Answer, Patience, Transport
from lumos.storage.objects.bucket import PAGE, Bucket, ByteStore, Entry, Page, bare, client_options

# Azure gives more at a time than others, and takes money for each time.
_MOST: Final = 5000


class AzureContainer(Bucket):
    """A container as some access reaches it.

    Azure lists from no given name on, and accounts with folders of their own list them in another
    order than keys have; so nothing here relies on either.
    """

    serves_ends: ClassVar[bool] = False

    _credentials: AzureCredentials

    def __init__(
        self,
        container: Container,
        access: AzureAccess,
        *,
        credentials: AzureCredentials,
        transport: Transport,
        patience: Patience,
    ) -> None:
        super().__init__(container.authority, patience)
        self._container = container
        self._access = access
        self._credentials = credentials
        self._transport = transport

    def page(
        self,
        prefix: str,
        *,
        after: str = "",
        token: str = "",
        folders: bool = False,
        limit: int = PAGE,
    ) -> Page:
        """Some blobs with a prefix; of those that do not sort after the text, none."""
        query = {
            "restype": "container",
            "comp": "list",
            # Some writers say only there that a blob stands for a folder.
            "include": "metadata",
            "maxresults": str(_MOST if limit == PAGE else limit),
            **({"prefix": prefix} if prefix else {}),
            **({"delimiter": "/"} if folders else {}),
        }
        while True:
            with self._fuse.guarded():
                answer = self._asked("", query={**query, **({"marker": token} if token else {})})
            page = _page(answer.body)
            entries = [entry for entry in page.entries if entry.key > after]
            # A page may be empty although others follow.
            if entries or page.folders or not page.token:
                return page._replace(entries=entries)
            token = page.token

    def _asked(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        answer = self._answered("GET", key, query=query, headers=headers)
        if answer.status not in (200, 206):
            raise self._without_secrets(error_of(answer.status, answer.body))
        return answer

    def put(self, key: str, data: bytes) -> None:
        if not self._would_be_seen():
            super().put(key, data)
            return
        headers = {"x-ms-blob-type": "BlockBlob"}
        answer = self._answered("PUT", key, headers=headers, body=data)
        if answer.status != 201:
            raise self._without_secrets(error_of(answer.status, answer.body))

    def _would_be_seen(self) -> bool:
        # Whoever is sent elsewhere tells there which address sent it.
        return isinstance(self._credentials.current(), Sas)

    def delete(self, keys: list[str]) -> None:
        # One by one: what Azure knows for many at a time is not there in all accounts.
        self._each(self._removed, keys)

    def _removed(self, key: str) -> None:
        answer = self._answered("DELETE", key)
        if answer.status not in (200, 202, 204, 404):
            raise self._without_secrets(error_of(answer.status, answer.body))

    def _answered(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> Answer:
        name = self._container.name
        path = quote(f"/{name}/{key}" if key else f"/{name}", safe="/-._~")
        asked = f"?{urlencode(query, quote_via=quote)}" if query else ""
        url = f"{self._access.account_url(self._container)}{path}{asked}"
        login = self._credentials.current()
        return self._transport.send(
            method,
            login.address(url),
            headers=partial(login.headers, Asked(method, url, headers)),
            body=body,
            patience=self._patience,
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
            retry_config=self._retries(),
        )


def _page(body: bytes) -> Page:
    try:
        root = ElementTree.fromstring(body)
        if root.tag != "EnumerationResults":
            raise ValueError(root.tag)
        entries = [_entry(node) for node in root.iter("Blob") if not _is_folder(node)]
    except (ElementTree.ParseError, ValueError) as problem:
        raise StorageFault("the endpoint does not answer as Azure does") from problem
    folders = [_name(node) for node in root.iter("BlobPrefix")]
    return Page(entries, folders, root.findtext("NextMarker") or "")


def _entry(node: ElementTree.Element) -> Entry:
    return Entry(
        _name(node),
        int(node.findtext("Properties/Content-Length") or 0),
        _microseconds(node.findtext("Properties/Last-Modified", "")),
        bare(node.findtext("Properties/Etag", "")),
        node.findtext("Properties/AccessTier", "").lower(),
    )


def _is_folder(node: ElementTree.Element) -> bool:
    kind = node.findtext("Properties/ResourceType", "")
    mark = next(
        (each.text for each in node.iterfind("Metadata/*") if each.tag.lower() == "hdi_isfolder"),
        "",
    )
    return kind == "directory" or (mark or "").lower() == "true"


def _name(node: ElementTree.Element) -> str:
    found = node.find("Name")
    if found is None:
        raise ValueError("a blob without a name")
    text = found.text or ""
    # So are names written that XML cannot hold.
    return unquote(text) if found.get("Encoded") == "true" else text


@lru_cache(maxsize=10_000)
def _microseconds(text: str) -> int:
    return int(parsedate_to_datetime(text).timestamp()) * 1_000_000
