"""Servers that the tests have, each in a process of its own, whose time counts for nobody."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Programs of the tests are run here, and neither imported nor copied.
TESTS = Path(__file__).resolve().parents[1] / "tests"


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[str]:
    """The address that a program says first; it ends when its standard input does."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"{module} did not start; it says why above.")
            yield address
        finally:
            server.stdin.close()
