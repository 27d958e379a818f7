"""The maximum size of decompressed files, for modules that read entire files.

It does not apply to data files, of which `lumos.formats` only reads samples of limited length.
"""

from typing import Final

# No real log or metadata compresses better than this: a larger ratio is a decompression bomb.
MAX_COMPRESSION_RATIO: Final = 1000
ALWAYS_ALLOWED: Final = 64 * 1024 * 1024


def max_decompressed_bytes(compressed_bytes: int) -> int:
    """The maximum decompressed size of a file with this compressed size."""
    return max(ALWAYS_ALLOWED, MAX_COMPRESSION_RATIO * compressed_bytes)
