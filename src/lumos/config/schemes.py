"""Which store an address means."""

from typing import Final

# The types of sources that lie behind schemes; Hadoop and others have several names for one store.
STORES: Final = {
    "s3": "s3", "s3a": "s3", "s3n": "s3",
    "gs": "gcs", "gcs": "gcs",
}  # fmt: skip
SHOWN: Final = "s3:// and gs://"


def store_of(address: str) -> str | None:
    """The type of the source that an address lies in, if any serves it."""
    scheme, is_address, _ = address.partition("://")
    return STORES.get(scheme.lower()) if is_address else None
