"""Canonical URIs: engines and table formats write the same location in several ways."""

import re
from typing import Final

_SCHEME_ALIASES: Final = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs",
    "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss",
}  # fmt: skip
# For a match at the start only, since a local path may have folders such as `x:`.
ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# file:/x, file:///x and file://localhost/x are the same.
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")
_BLOB_HOST: Final = re.compile(r"(?<=\.)blob(?=\.core\.)")

_HADOOP: Final = "hdfs://"


def canonical(address: str, near: str = "") -> str:
    """The URI of a file or folder in canonical form; local paths are returned unchanged.

    Credentials in the URI are removed. If a Hadoop URI has no name node or port, those of `near`
    are used: `near` is the URI of the file in which the address was found.
    """
    local = _LOCAL.match(address)
    if local is not None:
        return address[local.end() :]
    match = ADDRESS.match(address)
    if match is None:
        is_hadoop_path = near.startswith(_HADOOP) and address.startswith("/")
        return f"{_authority(near)}{address}" if is_hadoop_path else address
    scheme = _SCHEME_ALIASES.get(match[1].lower(), match[1].lower())
    host, slash, path = address[match.end() :].partition("/")
    host = _BLOB_HOST.sub("dfs", host) if scheme == "abfss" else host.rpartition("@")[2]
    authority = f"{scheme}://{host}"
    is_hadoop = authority.startswith(_HADOOP) and near.startswith(_HADOOP)
    if is_hadoop and _may_be_same_host(host, near):
        authority = _authority(near)
    return f"{authority}{slash}{path}"


def absolute(path: str, root: str) -> str:
    """The URI of a path that is relative to a root, or is a URI itself."""
    if ADDRESS.match(path) or path.startswith("/"):
        return canonical(path, root)
    return f"{root.rstrip('/')}/{path}"


def is_same_store(address: str, other: str) -> bool:
    """Whether two locations are in the same bucket, container or file system, or both local."""
    if "://" not in address or "://" not in other:
        return "://" not in address and "://" not in other
    return _authority(address) == _authority(other)


def _authority(address: str) -> str:
    return "/".join(address.split("/", 3)[:3])


def _may_be_same_host(host: str, near: str) -> bool:
    """Whether a host may be the name node of a URI; missing parts match any value."""
    name, _, port = host.partition(":")
    near_name, _, near_port = _authority(near).removeprefix(_HADOOP).partition(":")
    return name in ("", near_name) and (not port or not near_port or port == near_port)
