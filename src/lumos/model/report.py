"""What commands print as JSON and the SDK returns: the base of all reports."""

from typing import Final

import msgspec

FORMAT_VERSION: Final = "1.0"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A value that leaves Lumos."""
