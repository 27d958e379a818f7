"""The one spelling of an address, of the several that tables and engines have for one place."""

import re
from typing import Final

_SAME: Final = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs",
    "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss",
}  # fmt: skip
# file:/x, file:///x and file://localhost/x are one.
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)")
_BLOB_HOST: Final = re.compile(r"(?<=\.)blob(?=\.core\.)")


def canonical(address: str) -> str:
    """An address of a file or folder as storages spell it; a path of this machine stays one."""
    local = _LOCAL.match(address)
    if local is not None:
        return address[local.end() :]
    scheme, is_address, rest = address.partition("://")
    if not is_address:
        return address
    scheme = _SAME.get(scheme.lower(), scheme.lower())
    host, slash, path = rest.partition("/")
    if scheme == "abfss":
        host = _BLOB_HOST.sub("dfs", host)
    return f"{scheme}://{host}{slash}{path}"
