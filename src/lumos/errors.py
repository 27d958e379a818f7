"""One tree of errors: each says what is wrong, with which value, and what would be right."""

import difflib
from collections.abc import Iterable
from typing import ClassVar

FAILED = 1
MISUSED = 2
_UNAUTHORIZED = 401


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


class CatalogError(LumosError):
    """A catalog that did not do what was asked of it.

    `platform` is the catalog's name and `status` what its server answered, if it did; `retryable`
    says whether the same may work later without anybody changing anything.
    """

    def __init__(
        self, text: str, *, platform: str, status: int | None = None, retryable: bool = False
    ) -> None:
        self.platform = platform
        self.status = status
        self.retryable = retryable
        super().__init__(text)


class CatalogUnavailable(CatalogError):
    """A catalog that does nothing at all for us, so that there is no use in asking for more."""


class CatalogRefused(CatalogUnavailable):
    """A catalog that does not let us in; `key` and `variable` are where its token can be given."""

    def __init__(self, platform: str, *, status: int, key: str, variable: str) -> None:
        problem = (
            "does not know who asks: no token was given, or it is not valid (any more)"
            if status == _UNAUTHORIZED
            else "knows who asks and does not allow it: the token's owner lacks the right"
        )
        super().__init__(
            f"{platform} {problem} ({status}). Give a token in platform_config.{key} if this is "
            f"the address that is configured there, or else in the environment variable "
            f"{variable}.",
            platform=platform,
            status=status,
        )


class CatalogBusy(CatalogUnavailable):
    """A catalog that kept failing until there was no patience left."""

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
    """A catalog that nobody answers for: no such host, nothing listens, or no trusted TLS."""

    def __init__(self, platform: str, address: str, problem: str, *, ca_file: str) -> None:
        trust = "certificate" in problem.casefold() or "ssl" in problem.casefold()
        advice = (
            f"If its certificate is the company's own, name the authority's file in {ca_file}."
            if trust
            else "Check the address, and that the server runs."
        )
        super().__init__(
            f"{platform} cannot be reached at {address}: {problem}. {advice}",
            platform=platform,
            retryable=not trust,
        )


class CatalogTooOld(CatalogUnavailable):
    """A catalog whose version lacks something that is needed."""

    def __init__(self, platform: str, lacking: str, *, needed: str, status: int | None = None):
        super().__init__(
            f"{platform} lacks {lacking}. Lumos needs {needed}.", platform=platform, status=status
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a closing question, or nothing."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean '{by_folded[nearest[0]]}'?" if nearest else ""
