"""`datahub-file:PATH`: a metadata file in DataHub's own format as a catalog."""

from lumos.catalogs.datahub_file.platform import DatahubFile
from lumos.catalogs.datahub_file.records import NotMetadata
from lumos.catalogs.datahub_model import names

__all__ = ["DatahubFile", "NotMetadata", "names"]
