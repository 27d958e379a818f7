"""Settings of tables that are nobody's business: some writers keep their way to the store there."""

import re
from collections.abc import Mapping
from typing import Final

from lumos.config.secret import is_secret_name

# Names that writers of tables have for secrets, beside those of options.
_SECRET: Final = re.compile(r"\bsas\b|(^|[-_.])(pass|auth)$", re.IGNORECASE)
# Addresses, strings of connections, documents and headers that hold what opens them. No part may
# be matched in two ways: values are as long as their writers like.
_TELLS_SECRET: Final = re.compile(
    r"://[^/?#\s:@]*:[^/?#\s@]*@"
    r"|\bhttps?://[^/?#\s:@]+@"
    r"|(?:password|passwd|pwd|secret|token|accesskey|accountkey|apikey|sig|signature)"
    r"(?:=[^\s;&]|\"\s{0,9}:\s{0,9}\")"
    r"|\bbearer\s[\w-]{16}"
    r"|\bbasic\s(?=\S{0,64}[\d=])[\w+/]{8}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|-BEGIN [A-Z ]{0,30}PRIVATE KEY",
    re.IGNORECASE,
)


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that do not look like secrets, neither by their names nor by their values."""
    return {
        name: value
        for name, value in settings.items()
        if not (is_secret_name(name) or _SECRET.search(name) or _TELLS_SECRET.search(value))
    }
