"""Writes reports to files that the user named."""

import os
import stat
from pathlib import Path

from lumos.errors import MisuseError
from lumos.storage import storage_of


def write_output(output: str | Path, data: bytes) -> None:
    """Write a file atomically; if it is a link, its target is written."""
    require_text(str(output), "output file")
    file = Path(output)
    mode = file.stat().st_mode if file.exists() else stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise MisuseError(f"{output} is a folder. Name a file to write the report to.")
    if stat.S_ISSOCK(mode):
        raise MisuseError(f"{output} is a socket. Name a file to write the report to.")
    if stat.S_ISREG(mode):
        file = Path(os.path.realpath(file))
        if not file.parent.is_dir():
            raise MisuseError(f"There is no folder {file.parent} for {file.name}. Create it first.")
        storage_of(str(file)).write(str(file), data)
    else:
        # Do not replace a device or a pipe by a file.
        with file.open("wb") as stream:
            stream.write(data)


def require_text(text: str, argument: str) -> str:
    """Return the text; raise an error if it is empty."""
    if not text.strip():
        raise MisuseError(f"The {argument} is empty. Name one, or leave the argument out.")
    return text
