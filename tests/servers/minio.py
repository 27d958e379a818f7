"""A real MinIO on this machine, built by Go from its public module into build/ once: ten minutes.

This fetches about 250 modules from the Go proxy (about 1 GB in Go's module cache). MinIO is under the
AGPL, so it is used by tests only.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
KEY, SECRET = "key-id", "hush-hush"
ARN = "arn:minio:sqs::lumos:webhook"
_FOLDER = Path(__file__).parents[2] / "build" / "minio"
_SECONDS_TO_BUILD = 3600
_SECONDS_TO_START = 120


@contextmanager
def minio(*, webhook: str, token: str) -> Iterator[tuple[str, str]]:
    """The endpoint of a server, and the ARN of its webhook; skips the test where none can be had.

    Events that the webhook does not accept are kept and sent again.
    """
    program = _program()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="lumos-minio-") as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "MINIO_ROOT_USER": KEY,
            "MINIO_ROOT_PASSWORD": SECRET,
            "MINIO_BROWSER": "off",
            "MINIO_NOTIFY_WEBHOOK_ENABLE_lumos": "on",
            "MINIO_NOTIFY_WEBHOOK_ENDPOINT_lumos": webhook,
            "MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_lumos": token,
            "MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_lumos": str(folder / "events"),
        }
        command = [program, "server", folder / "data", "--address", f"127.0.0.1:{port}", "--quiet"]
        with (
            (folder / "log").open("w+") as log,
            subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process,
        ):
            try:
                _wait_for(f"http://127.0.0.1:{port}", process, folder / "log")
                yield f"http://127.0.0.1:{port}", ARN
            finally:
                process.terminate()
                process.wait(timeout=60)


def _program() -> Path:
    program = _FOLDER / f"minio-{VERSION}"
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip("There is no go here, which builds MinIO.")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as name:
        command = ["go", "install", f"github.com/minio/minio@{VERSION}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False,
                env={**os.environ, "GOBIN": name}, timeout=_SECONDS_TO_BUILD,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as problem:
            pytest.skip(f"MinIO cannot be built here: {problem}")
        if done.returncode:
            pytest.skip(f"MinIO cannot be built here: {' '.join(done.stderr.split())[-300:]}")
        Path(name, "minio").rename(program)
    return program


def _wait_for(endpoint: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{endpoint}/minio/health/ready", timeout=5):
                return
        except (OSError, urllib.error.HTTPError):
            time.sleep(0.2)
    raise AssertionError(f"MinIO did not start: {log.read_text(errors='replace')[-2000:]}")
