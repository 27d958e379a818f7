"""All errors of Lumos: each message contains the problem, the value and a possible fix."""

import difflib
import re
from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, Final

FAILED = 1
MISUSED = 2
_UNAUTHORIZED = 401
# The maximum number of names that a message lists, and that `nearest` compares.
_MAX_LISTED: Final = 20
_MAX_COMPARED: Final = 20_000
_MIN_PART_LENGTH: Final = 3


class LumosError(Exception):
    """An error that Lumos reports to its user as one sentence instead of a traceback."""

    exit_code: ClassVar[int] = FAILED


class MisuseError(LumosError):
    """The command, the configuration or an argument is wrong; nothing was changed."""

    exit_code: ClassVar[int] = MISUSED


class UnknownName(MisuseError):
    """A name that is not one of the known names of its kind (`what`)."""

    def __init__(
        self, what: str, name: str, known: Iterable[str], *, listed: str = "Known", next: str = ""
    ) -> None:
        self.what = what
        self.name = name
        self.known = sorted(known)
        names = ", ".join(self.known[:_MAX_LISTED])
        more = f" and {rest:,} more" if (rest := len(self.known) - _MAX_LISTED) > 0 else ""
        listing = f" {listed}: {names}{more}." if self.known else ""
        step = f" {next}" if next else ""
        nearest = did_you_mean(name, self.known)
        super().__init__(f"No {what} named '{name}'.{listing}{nearest}{step}")


class MissingDependency(LumosError):
    """An optional library that this feature needs is not installed."""

    def __init__(self, purpose: str, library: str, extra: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(f"{purpose} needs {library}: pip install 'lumos[{extra}]'")


class CatalogError(LumosError):
    """A failed request to a catalog.

    `platform` is the name of the catalog and `status` the HTTP status, if there was a response.
    `retryable` failures may disappear without any change.
    """

    def __init__(
        self, text: str, *, platform: str, status: int | None = None, retryable: bool = False
    ) -> None:
        self.platform = platform
        self.status = status
        self.retryable = retryable
        super().__init__(text)


class CatalogUnavailable(CatalogError):
    """A catalog that currently does not respond, so further requests are pointless."""


class CatalogRefused(CatalogUnavailable):
    """A catalog that denies access; `key` and `variable` name where to set its token."""

    def __init__(self, platform: str, *, status: int, key: str, variable: str) -> None:
        problem = (
            "rejected the request: no token, or an invalid or expired one"
            if status == _UNAUTHORIZED
            else "denied the request: the owner of the token lacks permission"
        )
        super().__init__(
            f"{platform} {problem} ({status}). Set a token with platform_config.{key} for the "
            f"configured address, or with the environment variable {variable} for any other.",
            platform=platform,
            status=status,
        )


class CatalogBusy(CatalogUnavailable):
    """A catalog that still failed after all retries."""

    def __init__(
        self, platform: str, what: str, *, attempts: int, seconds: float, last: str,
        status: int | None = None,
    ) -> None:  # fmt: skip
        self.attempts = attempts
        tries = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(
            f"{platform} did not answer: {what} was tried {tries} over {seconds:.0f} s, "
            f"the last time with: {last}",
            platform=platform,
            status=status,
            retryable=True,
        )


class CatalogUnreachable(CatalogUnavailable):
    """A catalog that cannot be reached: unknown host, closed port, or untrusted certificate."""

    def __init__(self, platform: str, address: str, problem: str, *, ca_file: str) -> None:
        trust = "certificate" in problem.casefold() or "ssl" in problem.casefold()
        advice = (
            f"If the certificate is your company's own, set {ca_file} to the file of its authority."
            if trust
            else "Check the address and that the server is running."
        )
        super().__init__(
            f"{platform} cannot be reached at {address}: {problem}. {advice}",
            platform=platform,
            retryable=not trust,
        )


class CatalogTooOld(CatalogUnavailable):
    """A catalog whose version lacks a function that Lumos needs."""

    def __init__(self, platform: str, lacking: str, *, needed: str, status: int | None = None):
        super().__init__(
            f"{platform} lacks {lacking}. Lumos needs {needed}.", platform=platform, status=status
        )


def nearest(name: str, known: Iterable[str], *, limit: int = 1) -> list[str]:
    """Return the known names that are most similar to a name, the most similar first.

    Compares whole names, then the last parts of names. If none is similar, returns the names that
    contain the last part.
    """
    folded = name.casefold()
    last = _last_part(folded)
    by_spelling: dict[str, str] = {}
    for each in islice(known, _MAX_COMPARED):
        by_spelling.setdefault(each.casefold(), each)
        by_spelling.setdefault(_last_part(each.casefold()), each)
    similar = difflib.get_close_matches(folded, by_spelling, n=limit, cutoff=0.6)
    if not similar:
        similar = difflib.get_close_matches(last, by_spelling, n=limit, cutoff=0.6)
    if not similar and len(last) >= _MIN_PART_LENGTH:
        similar = sorted((each for each in by_spelling if last in each), key=len)
    return list(dict.fromkeys(by_spelling[each] for each in similar))[:limit]


def _last_part(name: str) -> str:
    """The part after the last dot or slash: `city` for `address.city`."""
    return re.split(r"[./]", name.rstrip("./"))[-1] or name


def did_you_mean(name: str, known: Iterable[str], *, limit: int = 1) -> str:
    """Return ` Did you mean 'x'?` with the most similar known names, or "" if there are none."""
    names = nearest(name, known, limit=limit)
    return f" {question(names)}" if names else ""


def question(names: Iterable[str]) -> str:
    """Ask whether the user meant one of the names."""
    quoted = " or ".join(f"'{each}'" for each in names)
    return f"Did you mean {quoted}?"
