"""Variables in configuration: `${NAME}`, `${NAME:-default}`, and `$${` for a plain `${`."""

import re
from collections.abc import Mapping
from typing import Final

from lumos.errors import MisuseError

_REFERENCE: Final = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{"
)


class VariableError(MisuseError):
    """A reference to a variable that is not set, or that is no proper reference."""


def interpolated(text: str, environment: Mapping[str, str]) -> str:
    """The text with its variables replaced, once: what a variable holds is never read again."""

    def value(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if match[0] == "$${":
            return "${"
        if name is None:
            raise VariableError(
                "opens a variable with '${' that does not read ${NAME} or ${NAME:-default}. "
                "Write $${ for a plain ${"
            )
        found = environment.get(name)
        # As in a shell, a default also stands in for a variable that is set but empty.
        if default is not None and not found:
            return default
        if found is None:
            raise VariableError(
                f"needs the environment variable {name}, which is not set. "
                f"Set it (export {name}=...) or give a default: ${{{name}:-...}}"
            )
        return found

    return _REFERENCE.sub(value, text)
