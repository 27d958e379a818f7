"""In which form a report leaves, and where to."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from lumos.errors import MisuseError

Form = TypeVar("Form")


def by_ending(output: Path, forms: Mapping[str, Form]) -> Form:
    """The form that the ending of a file asks for."""
    form = forms.get(output.suffix.lower())
    if form is None:
        endings = ", ".join(forms)
        raise MisuseError(f"Unknown format of {output}. Use one of these endings: {endings}.")
    return form


def write(text: str, output: Path | None, *, remark: str = "") -> None:
    """Writes to stdout, or to a file: whole or not at all, in a folder that is made for it."""
    if output is None:
        sys.stdout.write(text)
        return
    from lumos.cli.screen import stderr
    from lumos.schemas.output import write_output

    output.parent.mkdir(parents=True, exist_ok=True)
    write_output(output, text.encode())
    stderr().print(f"[ok] Wrote {output}. {remark}".rstrip())
