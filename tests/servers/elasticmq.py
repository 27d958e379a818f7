"""A real queue server with the interface of SQS: ElasticMQ, from Maven Central into build/."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

VERSION = "1.7.1"
_FOLDER = Path(__file__).parents[2] / "build" / f"elasticmq-{VERSION}"
_SECONDS_TO_FETCH = 1800
_SECONDS_TO_START = 240
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lumos</groupId><artifactId>servers</artifactId><version>1</version><dependencies>
<dependency><groupId>org.elasticmq</groupId><artifactId>elasticmq-server_2.13</artifactId>
  <version>{VERSION}</version></dependency>
</dependencies></project>"""
_SETTINGS = """
include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-hostname = "127.0.0.1", bind-port = {port} }}
rest-stats {{ enabled = false }}
messages-storage {{ enabled = false }}
"""


@contextmanager
def elasticmq() -> Iterator[str]:
    """The address of a server without queues; skips the test, saying why, where it cannot be had."""
    _fetch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        settings = Path(name, "elasticmq.conf")
        settings.write_text(_SETTINGS.format(port=port), encoding="utf-8")
        command = ["java", "-Xmx256m", f"-Dconfig.file={settings}", "-cp", f"{_FOLDER}/*",
                   "org.elasticmq.server.Main"]  # fmt: skip
        with (
            Path(name, "log").open("w+") as log,
            subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as process,
        ):
            try:
                _wait_for(f"http://127.0.0.1:{port}", process, Path(name, "log"))
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()
                process.wait(timeout=60)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urlopen(address, timeout=5):
                return
        except HTTPError:
            # An answer, although not to a question that it knows.
            return
        except URLError:
            time.sleep(0.2)
    pytest.fail(f"ElasticMQ did not answer: {log.read_text()[-3000:]}")


def _fetch() -> None:
    if _FOLDER.exists():
        return
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"There is no {tool} here.")
    scratch = _FOLDER.with_name(f"{_FOLDER.name}.{os.getpid()}")
    scratch.mkdir(parents=True)
    try:
        (scratch / "pom.xml").write_text(_POM, encoding="utf-8")
        command = ["mvn", "-q", "-B", "-f", f"{scratch}/pom.xml", "dependency:copy-dependencies",
                   "-DincludeScope=runtime", f"-DoutputDirectory={scratch}/jars"]  # fmt: skip
        fetched = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS_TO_FETCH
        )
        if fetched.returncode != 0:
            pytest.skip(f"ElasticMQ could not be fetched: {fetched.stdout[-500:]}")
        (scratch / "jars").rename(_FOLDER)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
