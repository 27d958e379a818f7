"""Reports in files that somebody named."""

import os
import stat
from pathlib import Path

from lumos.errors import MisuseError
from lumos.storage import storage_of


def write_output(output: str | Path, data: bytes) -> None:
    """Writes a file whole or not at all; through a link into what it leads to."""
    given(str(output), "output file")
    file = Path(output)
    mode = file.stat().st_mode if file.exists() else stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise MisuseError(f"{output} is a folder. Name a file to write the report to.")
    if stat.S_ISSOCK(mode):
        raise MisuseError(f"{output} is a socket. Name a file to write the report to.")
    if stat.S_ISREG(mode):
        _write_whole(Path(os.path.realpath(file)), data)
    else:
        # A device or a pipe takes what is written into it, and must stay what it is.
        with file.open("wb") as stream:
            stream.write(data)


def _write_whole(file: Path, data: bytes) -> None:
    if not file.parent.is_dir():
        raise MisuseError(f"There is no folder {file.parent} for {file.name}. Make it first.")
    storage_of(str(file)).write(str(file), data)


def given(text: str, what: str) -> str:
    """The text of an argument that must not be empty."""
    if not text.strip():
        raise MisuseError(f"The {what} is empty. Name one, or leave the argument out.")
    return text
