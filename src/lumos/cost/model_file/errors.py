"""What may be wrong with a file that holds a cost model."""

from pathlib import Path

from lumos.errors import MisuseError


class InvalidModel(MisuseError):
    """A model that cannot be computed as it stands."""

    def __init__(self, file: Path, reason: str, *, line: int | None = None) -> None:
        self.file = file
        self.line = line
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
