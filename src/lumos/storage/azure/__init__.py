"""Azure Blob Storage and Data Lake Storage, with the Blob API."""

from lumos.storage.azure.access import AzureAccess
from lumos.storage.azure.storage import AzureStorage

__all__ = ["AzureAccess", "AzureStorage"]
