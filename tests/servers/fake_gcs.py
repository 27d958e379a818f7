"""fake-gcs-server, an emulator of Google's storage by others, built from Go's registry into build/.

Building it takes minutes, and some gigabytes of memory.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

VERSION = "v1.56.1"
_FOLDER = Path(__file__).parents[2] / "build" / "fake-gcs-server"
_SECONDS_TO_BUILD = 2400
_SECONDS_TO_START = 60.0


@contextmanager
def fake_gcs() -> Iterator[str]:
    """Its address; skips the test, saying why, where it cannot be had."""
    program = _program()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
               "-backend", "memory", "-external-url", url, "-public-host", f"127.0.0.1:{port}",
               "-log-level", "error"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(port: int) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < until, "The server did not start."
            time.sleep(0.1)
        else:
            return


def _program() -> Path:
    program = _FOLDER / VERSION / "fake-gcs-server"
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip("There is no go here.")
    environment = {
        **os.environ,
        "GOPATH": str(_FOLDER / "path"),
        "GOBIN": str(program.parent),
        # Modules are left writable, so that the folder can be removed.
        "GOFLAGS": "-p=1 -modcacherw",
    }
    command = ["go", "install", f"github.com/fsouza/fake-gcs-server@{VERSION}"]
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_TO_BUILD,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        pytest.skip(f"fake-gcs-server cannot be had here: {problem}")
    if done.returncode:
        told = re.sub(r"\s+", " ", done.stderr)[-300:]
        pytest.skip(f"fake-gcs-server cannot be had here: {told}")
    return program
