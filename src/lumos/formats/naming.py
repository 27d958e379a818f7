"""What a file's name promises of its content."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from lumos.formats.avro import Avro
from lumos.formats.compression import COMPRESSIONS, Compression
from lumos.formats.csv import Csv
from lumos.formats.interface import BinaryFormat, Format
from lumos.formats.json import Json
from lumos.formats.orc import Orc
from lumos.formats.parquet import Parquet

CSV: Final = Csv()
JSON: Final = Json()
BINARY: Final[tuple[BinaryFormat, ...]] = (Parquet(), Avro(), Orc())
FORMATS: Final[dict[str, Format]] = {format.name: format for format in (*BINARY, CSV, JSON)}
_FORMAT_OF: Final = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}
_COMPRESSION_OF: Final = {
    suffix: compression for compression in COMPRESSIONS for suffix in compression.suffixes
}
_UNSUPPORTED: Final = frozenset({".snappy", ".sz", ".lz4", ".deflate", ".xz", ".lzo", ".br", ".z"})
# Files that are no datasets however their text looks; only magic bytes speak louder than the name.
_OTHER: Final = frozenset({
    # pictures, sound, film, fonts
    ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".svg", ".ico", ".heic",
    ".psd", ".mp3", ".mp4", ".m4a", ".wav", ".flac", ".ogg", ".avi", ".mov", ".mkv", ".webm",
    ".ttf", ".otf", ".woff", ".woff2",
    # bodies in space
    ".obj", ".mtl", ".stl", ".ply", ".gcode",
    # archives and programs
    ".zip", ".tar", ".tgz", ".tbz2", ".txz", ".7z", ".rar", ".jar", ".war", ".whl", ".egg", ".iso",
    ".dmg", ".exe", ".dll", ".so", ".dylib", ".class", ".pyc", ".o", ".a", ".bin",
    # documents
    ".md", ".rst", ".adoc", ".tex", ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".xlsm", ".ppt",
    ".pptx", ".odt", ".ods", ".rtf", ".htm", ".html", ".xhtml", ".css",
    # source text and settings
    ".py", ".ipynb", ".r", ".rmd", ".jl", ".scala", ".java", ".kt", ".groovy", ".js", ".mjs", ".ts",
    ".tsx", ".jsx", ".vue", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".go", ".rs", ".rb", ".php",
    ".pl", ".pm", ".lua", ".swift", ".m", ".sh", ".bash", ".zsh", ".fish", ".bat", ".cmd", ".ps1",
    ".sql", ".hql", ".ddl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env",
    ".properties", ".xml", ".xsd", ".xsl", ".wsdl", ".proto", ".thrift", ".avdl", ".avsc",
    ".gradle", ".lock", ".tf", ".mk", ".cmake", ".patch", ".diff",
    # marks and scratch of tools
    ".crc", ".md5", ".sha1", ".sha256", ".sig", ".asc", ".pem", ".key", ".crt", ".tmp", ".swp",
    ".bak", ".pid", ".db", ".sqlite",
})  # fmt: skip
# The names that Hadoop's jobs, Hive and Spark give to the parts of what they write.
_PART: Final = re.compile(r"(?:part-(?:[a-z0-9]{1,8}-){0,3}\d{4,6}|\d{6}_\d{1,3})\Z", re.ASCII)


class Promise(NamedTuple):
    """The format, compression and endings in a name; `is_other` if it promises no dataset.

    `is_part` if it promises data of whatever format.
    """

    format: Format | None
    suffix: str
    compression: Compression | None = None
    compression_suffix: str = ""
    is_other: bool = False
    is_part: bool = False

    @property
    def ending(self) -> str:
        """The part of the name that says something of the content."""
        return self.suffix + self.compression_suffix


def promise_of(name: str) -> Promise:
    """What the name promises."""
    stem, last = _split(name)
    packed = last if last in _COMPRESSION_OF or last in _UNSUPPORTED else ""
    suffix = _split(stem)[1] if packed else last
    is_part = suffix == ".tbl" or (not suffix and _PART.match(stem) is not None)
    return _promise(suffix, packed, is_part=is_part)


def _split(name: str) -> tuple[str, str]:
    dot = name.rfind(".")
    return (name, "") if dot < 0 else (name[:dot], name[dot:].lower())


@lru_cache(maxsize=4096)
def _promise(suffix: str, compression_suffix: str, *, is_part: bool) -> Promise:
    return Promise(
        format=_FORMAT_OF.get(suffix),
        suffix=suffix,
        compression=_COMPRESSION_OF.get(compression_suffix),
        compression_suffix=compression_suffix,
        is_other=suffix in _OTHER,
        is_part=is_part,
    )
