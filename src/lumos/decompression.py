"""The limit on the size of decompressed files, for everything that reads files as a whole.

Data files are not read as a whole: `lumos.formats` reads samples of limited length.
"""

from typing import Final

# No real log or metadata compresses better than this: a larger ratio is a decompression bomb.
MAX_COMPRESSION_RATIO: Final = 1000
ALWAYS_ALLOWED: Final = 64 * 1024 * 1024


def max_decompressed_bytes(compressed_bytes: int) -> int:
    """How large a compressed file of this size may become."""
    return max(ALWAYS_ALLOWED, MAX_COMPRESSION_RATIO * compressed_bytes)
