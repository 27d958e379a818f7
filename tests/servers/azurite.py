"""Microsoft's own emulator of Azure's storage: Azurite, from npm into build/."""

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import IO

import pytest

VERSION = "3.35.0"
ACCOUNT = "devstoreaccount1"
# Published with the emulator; it opens nothing else.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_FOLDER = Path(__file__).parents[2] / "build" / "azurite"
_SECONDS_TO_FETCH = 1800
_SECONDS_TO_START = 120


@contextmanager
def azurite() -> Iterator[str]:
    """The address of its blobs; skips the test, saying why, where it cannot be had."""
    with _serving("blob") as address:
        yield address


@contextmanager
def azurite_queues() -> Iterator[str]:
    """The address of its queues."""
    with _serving("queue") as address:
        yield address


@contextmanager
def _serving(service: str) -> Iterator[str]:
    program = _package() / "dist" / "src" / service / "main.js"
    command = ["node", program, f"--{service}Host", "127.0.0.1", f"--{service}Port", "0", "--loose",
               "--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"{_address(process.stdout)}/{ACCOUNT}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def _package() -> Path:
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"There is no {tool} here.")
    package = _FOLDER / "node_modules" / "azurite"
    if not (package / "package.json").exists():
        _fetch()
    version = json.loads((package / "package.json").read_text())["version"]
    assert version == VERSION, f"{_FOLDER} holds another version: {version}"
    return package


def _fetch() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    scratch = _FOLDER / f"fetched.{os.getpid()}"
    command = ["npm", "install", "--prefix", scratch, "--no-audit", "--no-fund", "--ignore-scripts",
               f"azurite@{VERSION}"]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS_TO_FETCH
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        pytest.skip(f"Azurite cannot be had here: {problem}")
    if done.returncode:
        told = re.sub(r"\s+", " ", done.stderr)[-300:]
        pytest.skip(f"Azurite cannot be had here: {told}")
    (scratch / "node_modules").rename(_FOLDER / "node_modules")
    shutil.rmtree(scratch)


def _address(output: IO[str]) -> str:
    """Where it listens, as it says when it does."""
    lines: Queue[str] = Queue()
    # Read to its end, so that it never waits for somebody to read.
    threading.Thread(target=lambda: [lines.put(line) for line in output], daemon=True).start()
    told = []
    try:
        while True:
            told.append(lines.get(timeout=_SECONDS_TO_START))
            if (found := re.search(r"listens on (http://\S+)", told[-1])) is not None:
                return found.group(1)
    except Empty:
        raise AssertionError(f"Azurite did not start: {told}") from None
