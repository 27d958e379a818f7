"""The base class of reports, which commands print as JSON and the SDK returns."""

from typing import Final

import msgspec

FORMAT_VERSION: Final = "1.0"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A result of a command or SDK method."""
