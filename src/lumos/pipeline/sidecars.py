"""Files that accompany data: checksums, manifests, descriptions, unfinished copies."""

import re
from collections.abc import Collection
from typing import Final

from lumos.pipeline.variables import template_of

_MARKS: Final = {
    "a checksum": "md5 sha1 sha256 sha512 crc crc32 sum sig asc",
    "a marker or manifest of a writer": "manifest ctl done ok success lock marker trigger",
    "an unfinished or put-aside copy": "tmp temp bak swp orig part partial filepart crdownload "
    "inprogress pending incomplete",
    "a description": "schema ddl md rst html htm pdf",
    "a program or its settings": "py ipynb sql sh bat ps1 js css r jl java jar class toml ini cfg "
    "conf properties yaml yml",
}
_BY_ENDING: Final = {ending: what for what, some in _MARKS.items() for ending in some.split()}
_DESCRIBING: Final = re.compile(
    r"(?:metadata|.*\.metadata|(?:.*[-_.])?(?:manifest|schema|data[-_]schema)"
    r"|datapackage|dataset[-_](?:infos?|metadata|description)|package(?:-lock)?"
    r"|config|configuration|settings|croissant|checksums?)(?:[-_.]?v?\d+)?"
    r"\.(?:json|avsc|xml)(?:\.gz)?\Z",
    re.IGNORECASE,
)
# What services tell of an export: orders_manifest, manifest-files.json, export_info_x.json.
_OF_EXPORT: Final = re.compile(
    r"(?:.*[-_.])?manifest(?:\.txt)?\Z|manifest[-_.].*\.(?:json|xml|txt)(?:\.gz)?\Z"
    r"|(?:export|unload|snapshot|backup|dump)[-_](?:[a-z]+[-_])*"
    r"(?:info|metadata|summary|status|manifest)(?:[-_.].*)?\.(?:json|xml)(?:\.gz)?\Z",
    re.IGNORECASE,
)
_OF_NOTHING_BUT_VALUES: Final = re.compile(r"(?:\{[a-z-]+\}|[-_.])*manifest\.(?:csv|tsv|txt)\Z")
_READ_ME: Final = re.compile(
    r"(?:.*[-_.])?(?:readme|read[-_]me|licen[cs]e|notice|changelog|changes|copyright|citation"
    r"|authors|contributing|requirements|checksums?|md5sums?|sha\d+sums?|version|disclaimer"
    r"|terms[-_]of[-_]use)(?:\.(?:txt|md|rst|html|json|csv))?\Z",
    re.IGNORECASE,
)
_OF_ICEBERG: Final = re.compile(r"(?:.*/)?metadata\Z")


def why_sidecar(name: str) -> str | None:
    """What a file is, in words, if by its name it only accompanies data."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    if name.endswith("~"):
        return "an unfinished or put-aside copy"
    if _DESCRIBING.match(name) or _READ_ME.match(name):
        return "a description"
    if _OF_EXPORT.match(name) or (
        "manifest" in name and _OF_NOTHING_BUT_VALUES.match(template_of(name).text)
    ):
        return "a marker or manifest of a writer"
    return None


def holds_table_metadata(folder: str, names: Collection[str]) -> bool:
    """Whether a folder holds what a table format knows of its data rather than data."""
    return bool(_OF_ICEBERG.match(folder)) and any(
        name.endswith(".metadata.json") for name in names
    )
