"""Pages of keys as S3 spells them."""

from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from lumos.storage.errors import StorageFault
from lumos.storage.objects.bucket import Entry, Page, bare

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def page_query(prefix: str, after: str, token: str, *, folders: bool, limit: int) -> dict[str, str]:
    """What to ask for a page."""
    return {
        "list-type": "2",
        "prefix": prefix,
        "max-keys": str(limit),
        "encoding-type": "url",
        **({"delimiter": "/"} if folders else {}),
        **({"continuation-token": token} if token else {}),
        **({"start-after": after} if after and not token else {}),
    }


def page_of(body: bytes, *, after: str) -> Page:
    """The page that an answer holds."""
    try:
        page = _page(body)
    except (ElementTree.ParseError, ValueError) as problem:
        raise StorageFault("the endpoint does not answer as S3 does") from problem
    # Some servers know no beginning; what they list again must not count twice.
    return page._replace(entries=[entry for entry in page.entries if entry.key > after])


def _page(body: bytes) -> Page:
    root = ElementTree.fromstring(body)
    if not root.tag.endswith("ListBucketResult"):
        raise ValueError(root.tag)
    # Servers disagree about the namespace, or leave it out.
    space = root.tag.rpartition("}")[0]
    space = f"{space}}}" if space else ""
    is_encoded = root.findtext(f"{space}EncodingType") == "url"
    decoded = unquote_plus if is_encoded else str
    entries = [
        Entry(
            decoded(node.findtext(f"{space}Key", "")),
            int(node.findtext(f"{space}Size", "0")),
            _microseconds(node.findtext(f"{space}LastModified", "")),
            bare(node.findtext(f"{space}ETag", "")),
            node.findtext(f"{space}StorageClass", "").lower(),
        )
        for node in root.iter(f"{space}Contents")
    ]
    folders = [
        decoded(node.findtext(f"{space}Prefix", "")) for node in root.iter(f"{space}CommonPrefixes")
    ]
    is_cut = root.findtext(f"{space}IsTruncated") == "true"
    token = root.findtext(f"{space}NextContinuationToken", "") if is_cut else ""
    return Page(entries, folders, token)


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
