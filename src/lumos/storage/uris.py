"""The canonical spelling of a URI, of which engines and table formats have several."""

import re
from typing import Final

_SAME: Final = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs",
    "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss",
}  # fmt: skip
# Only at the start, since a local path may have folders such as `x:`.
ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# file:/x, file:///x and file://localhost/x are one.
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")
_BLOB_HOST: Final = re.compile(r"(?<=\.)blob(?=\.core\.)")

_HADOOP: Final = "hdfs://"


def canonical(address: str, near: str = "") -> str:
    """The URI of a file or folder as storages spell it; a local path stays as it is.

    Logins in it are removed. URIs of Hadoop may lack the name node or its port; those are taken
    from the URI `near` which they were found.
    """
    local = _LOCAL.match(address)
    if local is not None:
        return address[local.end() :]
    match = ADDRESS.match(address)
    if match is None:
        is_of_hadoop = near.startswith(_HADOOP) and address.startswith("/")
        return f"{_authority(near)}{address}" if is_of_hadoop else address
    scheme = _SAME.get(match[1].lower(), match[1].lower())
    host, slash, path = address[match.end() :].partition("/")
    host = _BLOB_HOST.sub("dfs", host) if scheme == "abfss" else host.rpartition("@")[2]
    found = f"{scheme}://{host}"
    if found.startswith(_HADOOP) and near.startswith(_HADOOP) and _is_one(host, near):
        found = _authority(near)
    return f"{found}{slash}{path}"


def absolute(path: str, root: str) -> str:
    """The URI of a path that is relative to a root, or is a URI itself."""
    if ADDRESS.match(path) or path.startswith("/"):
        return canonical(path, root)
    return f"{root.rstrip('/')}/{path}"


def is_same_store(address: str, other: str) -> bool:
    """Whether both lie on this machine, or in one bucket, container or file system."""
    if "://" not in address or "://" not in other:
        return "://" not in address and "://" not in other
    return _authority(address) == _authority(other)


def _authority(address: str) -> str:
    return "/".join(address.split("/", 3)[:3])


def _is_one(host: str, near: str) -> bool:
    """Whether a host may be the name node of a URI; missing parts match any."""
    name, _, port = host.partition(":")
    its_name, _, its_port = _authority(near).removeprefix(_HADOOP).partition(":")
    return name in ("", its_name) and (not port or not its_port or port == its_port)
