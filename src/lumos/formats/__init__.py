"""File formats: footers and headers become schemas, without reading the data."""

from lumos.formats.identification import FORMATS, identify, read_file
from lumos.formats.interface import FileFacts, Format, UnreadableFile

__all__ = ["FORMATS", "FileFacts", "Format", "UnreadableFile", "identify", "read_file"]
