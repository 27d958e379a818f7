"""`datahub-file:PATH`: a metadata file in DataHub's own format as a catalog."""

from lumos.platforms.datahub_file.platform import DatahubFile
from lumos.platforms.datahub_file.records import NotMetadata
from lumos.platforms.datahub_model import names

__all__ = ["DatahubFile", "NotMetadata", "names"]
