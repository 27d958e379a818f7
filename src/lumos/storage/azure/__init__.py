"""Azure Blob Storage and Data Lake Storage, by the protocol of blobs."""

from lumos.storage.azure.access import AzureAccess
from lumos.storage.azure.storage import AzureStorage

__all__ = ["AzureAccess", "AzureStorage"]
