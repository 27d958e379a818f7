"""FerretDB on SQLite: MongoDB's wire protocol by others, built by Go into build/ once: minutes.

It knows neither `$sample`, validators, views nor change streams.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

VERSION = "v1.24.0"
_FOLDER = Path(__file__).parents[2] / "build" / "ferretdb"
_SECONDS_TO_BUILD = 2400
_SECONDS_TO_START = 60


@contextmanager
def ferretdb() -> Iterator[str]:
    """The address of a server of its own; skips the test, saying why, where none can be had."""
    program = _program()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="lumos-ferretdb-") as name:
        log = Path(name, "log")
        command = [
            program, "--handler=sqlite", f"--sqlite-url=file:{name}/", f"--state-dir={name}",
            f"--listen-addr=127.0.0.1:{port}", "--debug-addr=-", "--telemetry=disable",
        ]  # fmt: skip
        with (
            log.open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=output, cwd=name) as process,
        ):
            try:
                _wait_for(port, process, log)
                yield f"mongodb://127.0.0.1:{port}"
            finally:
                process.terminate()
                process.wait(timeout=60)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"FerretDB did not start: {log.read_text(errors='replace')[-2000:]}")


def _program() -> Path:
    program = _FOLDER / f"ferretdb-{VERSION}"
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip("There is no go here, which builds FerretDB.")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as name:
        module = ["go", "mod", "download", "-json", f"github.com/FerretDB/FerretDB@{VERSION}"]
        sources = Path(json.loads(_run(module, Path(name)))["Dir"])
        copy = Path(name, "sources")
        # Files of Go's module cache are read-only. The version is one that a build script writes.
        shutil.copytree(sources, copy, copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(copy):
            Path(folder).chmod(0o755)
        (copy / "build" / "version" / "version.txt").write_text(VERSION)
        built = Path(name, "ferretdb")
        options = ["-tags=ferretdb_no_postgresql", "-o", str(built)]
        _run(["go", "build", *options, "./cmd/ferretdb"], copy)
        built.rename(program)
    return program


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False,
            timeout=_SECONDS_TO_BUILD,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as problem:
        pytest.skip(f"FerretDB cannot be built here: {problem}")
    if done.returncode:
        pytest.skip(f"FerretDB cannot be built here: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout
