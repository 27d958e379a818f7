"""What can be wrong with what somebody wants compared."""

from collections.abc import Iterable

from lumos.errors import MisuseError, did_you_mean

_MOST_LISTED = 12


class UnreadableSchema(MisuseError):
    """A file that should hold a schema and does not, with the place where reading stopped."""

    def __init__(
        self, file: str, problem: str, *, line: int | None = None, column: int | None = None
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        super().__init__(f"{place}: {problem}" + ("" if problem.endswith((".", "?")) else "."))


class UnknownVersion(MisuseError):
    """A version or a date for which a dataset has no schema."""

    def __init__(self, dataset: str, version: str, known: Iterable[str], *, why: str = "") -> None:
        self.version = version
        self.known = tuple(known)
        listed = ", ".join(self.known[-_MOST_LISTED:])
        earlier = len(self.known) - _MOST_LISTED
        more = f" (and {earlier} earlier)" if earlier > 0 else ""
        reason = f": {why}" if why else ""
        super().__init__(
            f"{dataset} has no version '{version}'{reason}. Its versions: {listed}{more}."
            f"{did_you_mean(version, self.known)}"
        )


class NotComparable(MisuseError):
    """Two things that cannot be laid side by side."""
