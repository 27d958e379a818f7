"""Patterns that select datasets by name, end of path or URN, with the wildcards * and ?."""

import re
from fnmatch import translate
from typing import Final
from urllib.parse import unquote

from lumos.errors import MisuseError
from lumos.model.urn import SCHEME

FORMAT_EXTENSIONS: Final = frozenset(
    {
        "parquet", "parq", "pq", "csv", "tsv", "psv", "tab", "txt", "tbl", "json", "jsonl",
        "ndjson", "ldjson", "geojson", "avro", "orc", "xml", "xls", "xlsx", "log", "arrow",
        "feather", "ipc",
    }
)  # fmt: skip
COMPRESSION_EXTENSIONS: Final = frozenset(
    {
        "gz", "gzip", "zst", "zstd", "bz2", "bzip2", "lz4", "lzo", "snappy", "sz", "zlib",
        "deflate", "xz", "br", "zip", "z",
    }
)  # fmt: skip
# Spark numbers the files that one task writes: part-00000-<uuid>.c000.snappy.parquet.
_SPARK_FILE_COUNTER: Final = re.compile(r"\.c\d{3}\Z")


class DatasetPattern:
    """A pattern such as `orders`, `sales/*` or `lumos://s3/lake/raw/*`."""

    def __init__(self, text: str) -> None:
        if not text.strip("/ "):
            raise MisuseError(f"'{text}' matches nothing. Use a pattern such as orders or sales/*")
        self.text = text
        self._is_urn_pattern = text.startswith(SCHEME)
        plain = text if self._is_urn_pattern else text.strip("/")
        # Also match the literal text, since names may contain brackets.
        self._whole = re.compile(f"{translate(plain)}|{re.escape(plain)}\\Z")
        self._end = re.compile(f"(?s:.*/)?(?:{self._whole.pattern})")

    @property
    def has_wildcards(self) -> bool:
        return any(wildcard in self.text for wildcard in "*?[")

    def matches(self, urn: str, name: str = "") -> bool:
        """Whether a dataset matches by its URN or its name."""
        if self._is_urn_pattern:
            return self._whole.match(urn) is not None
        if name and self._whole.match(name):
            return True
        path = urn.partition("?")[0].removeprefix(SCHEME).partition("/")[2]
        if "%" in path:
            path = unquote(path, errors="replace")
        return any(self._end.match(spelling) for spelling in name_spellings(path))

    def __str__(self) -> str:
        return self.text


def strip_extensions(name: str) -> str:
    """`delta` for delta.csv.gz. Names such as data.v2 and .csv are not changed."""
    return name_spellings(name)[-1]


def name_spellings(name: str) -> tuple[str, ...]:
    """A name with all, fewer and none of its extensions: delta.csv.gz, delta.csv, delta."""
    spellings = [name]
    while True:
        stem, dot, extension = spellings[-1].rpartition(".")
        if not dot or extension.lower() not in FORMAT_EXTENSIONS | COMPRESSION_EXTENSIONS:
            break
        if not stem.strip("*/") or stem.endswith("/"):
            return (name,)
        spellings.append(stem)
    stem = _SPARK_FILE_COUNTER.sub("", spellings[-1])
    if len(spellings) > 1 and stem not in ("", spellings[-1]):
        spellings.append(stem)
    return tuple(spellings)
