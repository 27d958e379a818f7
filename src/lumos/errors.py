"""One tree of errors: each says what is wrong, with which value, and what would be right."""

import difflib
from collections.abc import Iterable
from typing import ClassVar

FAILED = 1
MISUSED = 2


class LumosError(Exception):
    """Anything Lumos reports to its user as one sentence instead of a traceback."""

    exit_code: ClassVar[int] = FAILED


class MisuseError(LumosError):
    """The command, the configuration or an argument is wrong; nothing was attempted."""

    exit_code: ClassVar[int] = MISUSED


class UnknownName(MisuseError):
    """A name that should be one of a known set is not."""

    def __init__(
        self, what: str, name: str, known: Iterable[str], *, listed: str = "Known"
    ) -> None:
        self.what = what
        self.name = name
        self.known = sorted(known)
        listing = f" {listed}: {', '.join(self.known)}." if self.known else ""
        super().__init__(f"No {what} named '{name}'.{listing}{did_you_mean(name, self.known)}")


class MissingDependency(LumosError):
    """An optional library that this feature needs is not installed."""

    def __init__(self, purpose: str, library: str, extra: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(f"{purpose} needs {library}: pip install 'lumos[{extra}]'")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a closing question, or nothing."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean '{by_folded[nearest[0]]}'?" if nearest else ""
