"""Settings of tables that are nobody's business: some writers keep their way to the store there."""

import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = re.compile(
    r"secret|password|passwd|token|credential|(access|account|private)[-_.]?key|\bsas\b",
    re.IGNORECASE,
)


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings whose names do not look like those of secrets."""
    return {name: value for name, value in settings.items() if not _SECRET.search(name)}
