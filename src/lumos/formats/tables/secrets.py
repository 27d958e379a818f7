"""Settings of tables that are nobody's business: some writers keep their way to the store there."""

import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = re.compile(
    r"secret|password|passwd|token|credential|(access|account|private)[-_.]?key|\bsas\b",
    re.IGNORECASE,
)
# Addresses and strings of connections that hold what opens them.
_TELLS_SECRET: Final = re.compile(
    r"://[^/?#\s]*:[^/?#\s]*@|(?:password|pwd|secret|token|accountkey|sig|signature)=[^\s;&]",
    re.IGNORECASE,
)


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that do not look like secrets, neither by their names nor by their values."""
    return {
        name: value
        for name, value in settings.items()
        if not _SECRET.search(name) and not _TELLS_SECRET.search(value)
    }
