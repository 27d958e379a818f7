"""The callback for the progress of long-running work."""

from typing import Protocol


class Progress(Protocol):
    """Called with each step of long-running work, and with its progress if known."""

    def __call__(
        self, step: str, /, *, files: int = 0, share: float | None = None, unit: str = "files"
    ) -> None: ...


def no_progress(
    step: str, /, *, files: int = 0, share: float | None = None, unit: str = "files"
) -> None:
    """Report nothing."""
