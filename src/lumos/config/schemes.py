"""Which store an address means."""

import re
from typing import Final

# The types of sources that lie behind schemes; Hadoop and others have several names for one store.
STORES: Final = {
    "s3": "s3", "s3a": "s3", "s3n": "s3",
    "gs": "gcs", "gcs": "gcs",
    "az": "azure", "azure": "azure", "abfs": "azure", "abfss": "azure", "wasb": "azure",
    "wasbs": "azure",
    "hdfs": "hdfs", "webhdfs": "hdfs", "swebhdfs": "hdfs",
}  # fmt: skip
SHOWN: Final = "s3://, gs://, abfss:// and hdfs://"
# The address of an account as browsers and programs of Azure show it.
_ACCOUNT: Final = re.compile(r"https?://[^/@]+\.(?:blob|dfs)\.(?:core|fabric)\.", re.IGNORECASE)


def store_of(address: str) -> str | None:
    """The type of the source that an address lies in, if any serves it."""
    scheme, is_address, _ = address.partition("://")
    if not is_address:
        return None
    if _ACCOUNT.match(address):
        return "azure"
    return STORES.get(scheme.lower())
