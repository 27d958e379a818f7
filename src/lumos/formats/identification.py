"""Identifies the format of a file by its magic bytes, name and text, and reads the file."""

import re
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from lumos.formats.avro import Avro
from lumos.formats.compression import (
    COMPRESSIONS,
    CompressedContent,
    Compression,
    PlainContent,
    compression_of,
)
from lumos.formats.csv import Csv
from lumos.formats.interface import (
    BinaryFormat,
    Content,
    FileFacts,
    Format,
    RangedBytes,
    Remark,
    Sample,
    TextFormat,
    UnreadableFile,
    check_width,
)
from lumos.formats.json import Json
from lumos.formats.orc import Orc
from lumos.formats.parquet import Parquet
from lumos.formats.text import first_character, is_text


class CachedRanges:
    """Ranged reads that cache the longest head and tail read so far, to avoid repeated reads."""

    __slots__ = ("_file", "_head", "_tail", "size")

    def __init__(self, file: RangedBytes) -> None:
        self._file = file
        self._head = b""
        self._tail = b""
        self.size = file.size

    def head(self, length: int) -> bytes:
        length = min(length, self.size)
        if len(self._head) < length:
            is_whole = len(self._tail) == self.size
            self._head = self._tail if is_whole else self._file.head(length)
        return self._head[:length]

    def tail(self, length: int) -> bytes:
        length = min(length, self.size)
        if len(self._tail) < length:
            is_whole = len(self._head) == self.size
            self._tail = self._head if is_whole else self._file.tail(length)
        return self._tail[-length:] if length < len(self._tail) else self._tail


_FOREIGN_MAGIC: Final = (
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with Snappy"),
    (b"ARROW1\x00\x00", "an Arrow or Feather file"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document"),
    (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a Java class"),
)
_MARKUP: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:\?(xml)|!doctype html|html)\b", re.IGNORECASE
)


def foreign_format(head: bytes) -> str | None:
    """Describe a file that cannot be a dataset, given its first bytes; None for other files."""
    for magic, title in _FOREIGN_MAGIC:
        if head.startswith(magic):
            return title
    if head[257:262] == b"ustar":
        return "a tar archive"
    markup = _MARKUP.match(head)
    if markup:
        return "XML" if markup[1] else "HTML"
    return None


CSV: Final = Csv()
JSON: Final = Json()
BINARY: Final[tuple[BinaryFormat, ...]] = (Parquet(), Avro(), Orc())
FORMATS: Final[dict[str, Format]] = {format.name: format for format in (*BINARY, CSV, JSON)}
_FORMAT_BY_SUFFIX: Final = {
    suffix: format for format in FORMATS.values() for suffix in format.suffixes
}
_COMPRESSION_BY_SUFFIX: Final = {
    suffix: compression for compression in COMPRESSIONS for suffix in compression.suffixes
}
_UNSUPPORTED_COMPRESSIONS: Final = frozenset(
    {".snappy", ".sz", ".lz4", ".deflate", ".xz", ".lzo", ".br", ".z"}
)
# Suffixes of files that are not datasets, unless their magic bytes identify a data format.
_OTHER_SUFFIXES: Final = frozenset({
    # images, audio, video, fonts
    ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".svg", ".ico", ".heic",
    ".psd", ".mp3", ".mp4", ".m4a", ".wav", ".flac", ".ogg", ".avi", ".mov", ".mkv", ".webm",
    ".ttf", ".otf", ".woff", ".woff2",
    # 3D models
    ".obj", ".mtl", ".stl", ".ply", ".gcode",
    # archives and binaries
    ".zip", ".tar", ".tgz", ".tbz2", ".txz", ".7z", ".rar", ".jar", ".war", ".whl", ".egg", ".iso",
    ".dmg", ".exe", ".dll", ".so", ".dylib", ".class", ".pyc", ".o", ".a", ".bin",
    # documents
    ".md", ".rst", ".adoc", ".tex", ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".xlsm", ".ppt",
    ".pptx", ".odt", ".ods", ".rtf", ".htm", ".html", ".xhtml", ".css",
    # source code and configuration
    ".py", ".ipynb", ".r", ".rmd", ".jl", ".scala", ".java", ".kt", ".groovy", ".js", ".mjs", ".ts",
    ".tsx", ".jsx", ".vue", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".go", ".rs", ".rb", ".php",
    ".pl", ".pm", ".lua", ".swift", ".m", ".sh", ".bash", ".zsh", ".fish", ".bat", ".cmd", ".ps1",
    ".sql", ".hql", ".ddl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env",
    ".properties", ".xml", ".xsd", ".xsl", ".wsdl", ".proto", ".thrift", ".avdl", ".avsc",
    ".gradle", ".lock", ".tf", ".mk", ".cmake", ".patch", ".diff",
    # checksums, keys and temporary files
    ".crc", ".md5", ".sha1", ".sha256", ".sig", ".asc", ".pem", ".key", ".crt", ".tmp", ".swp",
    ".bak", ".pid", ".db", ".sqlite",
})  # fmt: skip
# Names of the parts that Hadoop jobs, Hive and Spark write.
_PART_NAME: Final = re.compile(r"(?:part-(?:[a-z0-9]{1,8}-){0,3}\d{4,6}|\d{6}_\d{1,3})\Z", re.ASCII)


class FileNameHints(NamedTuple):
    """The format, compression and suffixes in a file name.

    `is_not_data` is true for suffixes of files that are not datasets. `is_part` is true for names
    of part files, such as `part-00000` and `000000_0`, and for `.tbl` files: these names do not
    show a format.
    """

    format: Format | None
    suffix: str
    compression: Compression | None = None
    compression_suffix: str = ""
    is_not_data: bool = False
    is_part: bool = False

    @property
    def suffixes(self) -> str:
        """The suffixes of format and compression, such as `.csv.gz`."""
        return self.suffix + self.compression_suffix


def hints_from_name(name: str) -> FileNameHints:
    """The format and compression that a file name suggests."""
    stem, last = _split(name)
    is_compressed = last in _COMPRESSION_BY_SUFFIX or last in _UNSUPPORTED_COMPRESSIONS
    compression_suffix = last if is_compressed else ""
    suffix = _split(stem)[1] if is_compressed else last
    is_part = suffix == ".tbl" or (not suffix and _PART_NAME.match(stem) is not None)
    return _cached_hints(suffix, compression_suffix, is_part=is_part)


def _split(name: str) -> tuple[str, str]:
    dot = name.rfind(".")
    return (name, "") if dot < 0 else (name[:dot], name[dot:].lower())


@lru_cache(maxsize=4096)
def _cached_hints(suffix: str, compression_suffix: str, *, is_part: bool) -> FileNameHints:
    return FileNameHints(
        format=_FORMAT_BY_SUFFIX.get(suffix),
        suffix=suffix,
        compression=_COMPRESSION_BY_SUFFIX.get(compression_suffix),
        compression_suffix=compression_suffix,
        is_not_data=suffix in _OTHER_SUFFIXES,
        is_part=is_part,
    )


IdentifiedFile: TypeAlias = tuple[Format, FileFacts]

_HEAD_BYTES: Final = 64 * 1024
# Enough for the magic bytes of every format.
_MAGIC_BYTES: Final = 16


def identify(name: str, head: bytes) -> Format | None:
    """The format of a file with this name and these first bytes; None if it is not a data file."""
    hints = hints_from_name(name)
    by_magic = _format_by_magic(head)
    if by_magic is not None or hints.format is not None or hints.is_not_data:
        return by_magic or hints.format
    return _recognise_text(Sample(head, whole=False, total=None), hints)


def read_file(name: str, file: RangedBytes, *, column_stats: bool = False) -> IdentifiedFile | None:
    """Read a data file; None if it is not a data file. Raises UnreadableFile.

    If the name has the suffix of the format, one ranged read is enough, unless the footer is very
    long.
    """
    identified = _read(name, file, column_stats=column_stats)
    if identified is not None:
        check_width(len(identified[1].known.leaves))
    return identified


def _read(name: str, file: RangedBytes, *, column_stats: bool) -> IdentifiedFile | None:
    hints = hints_from_name(name)
    format_in_name = hints.format
    if file.size == 0:
        if format_in_name is None:
            return None
        raise UnreadableFile("empty_file", "The file has no bytes.")
    ranges = CachedRanges(file)
    if isinstance(format_in_name, BinaryFormat) and format_in_name.has_magic(ranges):
        facts = format_in_name.read(ranges, column_stats=column_stats)
        return format_in_name, _with_remarks(facts, hints, format_in_name, None)
    head = ranges.head(_MAGIC_BYTES if hints.is_not_data else _HEAD_BYTES)
    by_magic = _format_by_magic(head)
    if by_magic is not None and by_magic.has_magic(ranges):
        facts = by_magic.read(ranges, column_stats=column_stats)
        return by_magic, _with_remarks(facts, hints, by_magic, None)
    if hints.is_not_data:
        return None
    identified = _read_text(hints, ranges, compression_of(head))
    if identified is not None:
        return identified
    # The file may be a truncated binary file; the reader of that format raises the right error.
    format = format_in_name if isinstance(format_in_name, BinaryFormat) else by_magic
    if format is None or (format is not format_in_name and is_text(head)):
        return None
    return format, format.read(ranges)


def _format_by_magic(head: bytes) -> BinaryFormat | None:
    return next((format for format in BINARY if format.matches_head(head)), None)


def _read_text(
    hints: FileNameHints, file: RangedBytes, compression: Compression | None
) -> IdentifiedFile | None:
    content: Content = (
        PlainContent(file) if compression is None else CompressedContent(file, compression)
    )
    sample = content.sample(_HEAD_BYTES)
    format_in_name = hints.format
    try:
        if compression is not None:
            _reject_nested_compression(sample, compression)
        elif hints.compression_suffix and hints.compression is None and not is_text(sample.data):
            suffix = hints.compression_suffix
            reason = f"The compression {suffix} is not supported. Use gzip, zstd or bzip2."
            raise UnreadableFile("unsupported_compression", reason)
        if (foreign := foreign_format(sample.data)) is not None:
            raise UnreadableFile("mislabelled", f"It is named {hints.suffixes} but is {foreign}.")
    except UnreadableFile:
        # A binary file whose name has no suffix of a data format is not a data file.
        if format_in_name is None:
            return None
        raise
    if isinstance(format_in_name, TextFormat):
        format: TextFormat | None = _format_of_text(format_in_name, sample)
    else:
        format = _recognise_text(sample, hints)
    if format is None:
        return None
    facts = format.read(content, suffix=hints.suffix)
    return format, _with_remarks(facts, hints, format, compression)


def _reject_nested_compression(sample: Sample, compression: Compression) -> None:
    if compression_of(sample.data) is not None:
        raise UnreadableFile("nested_compression", "The file is compressed twice.")
    format = _format_by_magic(sample.data)
    if format is not None and not is_text(sample.data):
        raise UnreadableFile(
            "compressed_container",
            f"It is {format.title} inside {compression.name}, which engines do not read: "
            f"{format.title} files are compressed internally.",
        )


def _format_of_text(format_in_name: TextFormat, sample: Sample) -> TextFormat:
    """The format in the name, unless the text clearly has another format."""
    looks_like_json = first_character(sample) in ("{", "[")
    other = JSON if looks_like_json else CSV
    is_other = other is not format_in_name and other.recognises(sample)
    return other if is_other else format_in_name


def _recognise_text(sample: Sample, hints: FileNameHints) -> TextFormat | None:
    """The format of text in a file without a known suffix."""
    if not is_text(sample.data):
        return None
    for format in (JSON, CSV):
        try:
            if format.recognises(sample):
                return format
        except UnreadableFile:
            # The text may have another format, or not be data at all.
            continue
    # The name shows that the file is part of a table, so rows of equal width are enough evidence.
    return CSV if hints.is_part and CSV.has_even_rows(sample) else None


def _with_remarks(
    facts: FileFacts, hints: FileNameHints, format: Format, compression: Compression | None
) -> FileFacts:
    """Add a remark for each contradiction between name and content."""
    has_suffix = hints.compression_suffix != ""
    compression_matches_name = (
        compression is hints.compression and (compression is not None) == has_suffix
    )
    if format is hints.format and compression_matches_name:
        return facts
    remarks = list(facts.remarks)
    if format is not hints.format and (hints.format is not None or hints.is_not_data):
        remarks.append(_mislabelled_remark(hints.suffix, format.title))
    if compression is None and hints.compression_suffix:
        remarks.append(_mislabelled_remark(hints.compression_suffix, "not compressed"))
    elif compression is not None and not compression_matches_name:
        suffix = hints.compression_suffix or (hints.suffix if hints.format else "")
        if suffix:
            remarks.append(_mislabelled_remark(suffix, f"compressed with {compression.name}"))
    return facts._replace(remarks=tuple(remarks))


def _mislabelled_remark(suffix: str, content: str) -> Remark:
    return Remark("mislabelled", f"It is named {suffix} but is {content}.")
