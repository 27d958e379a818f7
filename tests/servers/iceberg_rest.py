"""Real Iceberg catalogs: the REST catalog of Iceberg's own tests, and Nessie.

Maven brings the jars from Maven Central into build/, in the versions that are named here.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[2] / "build"
_START_SECONDS = 300
_REST = (
    ("org.apache.iceberg", "iceberg-open-api", "1.10.1", "test-fixtures"),
    ("org.apache.iceberg", "iceberg-core", "1.10.1", ""),
    ("org.apache.iceberg", "iceberg-core", "1.10.1", "tests"),
    ("org.eclipse.jetty", "jetty-server", "11.0.26", ""),
    ("org.eclipse.jetty", "jetty-servlet", "11.0.26", ""),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0", ""),
    ("org.apache.hadoop", "hadoop-client-api", "3.3.6", ""),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.3.6", ""),
    ("org.slf4j", "slf4j-simple", "2.0.17", ""),
)
_NESSIE = "0.99.0"
_NESSIE_JAVA = 21


@contextmanager
def iceberg_catalog() -> Iterator[str]:
    """The address of a REST catalog of its own; skips the test, saying why, where none can be had."""
    jars = _rest_jars()
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "CATALOG_REST_PORT": str(port),
            "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_WAREHOUSE": f"{folder}/warehouse",
        }
        command = [
            "java",
            "-Xmx256m",
            "-cp",
            f"{jars}/*",
            "org.apache.iceberg.rest.RESTCatalogServer",
        ]
        with _running(command, environment, folder, f"http://127.0.0.1:{port}/v1/config"):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def nessie_server(*, endpoint: str, bucket: str) -> Iterator[str]:
    """The address of a Nessie of its own, which writes metadata to a bucket; skips otherwise."""
    jar = _nessie_jar()
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(port),
            "quarkus.management.port": str(_free_port()),
            "quarkus.management.host": "127.0.0.1",
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.catalog.default-warehouse": "warehouse",
            "nessie.catalog.warehouses.warehouse.location": f"s3://{bucket}/warehouse",
            "nessie.catalog.service.s3.default-options.region": "us-east-1",
            "nessie.catalog.service.s3.default-options.endpoint": endpoint,
            "nessie.catalog.service.s3.default-options.path-style-access": "true",
            "nessie.catalog.service.s3.default-options.access-key": (
                "urn:nessie-secret:quarkus:lumos-secrets.s3"
            ),
            "lumos-secrets.s3.name": "key-id",
            "lumos-secrets.s3.secret": "hush-hush",
        }
        options = [f"-D{name}={value}" for name, value in settings.items()]
        command = [_newer_java(), "-Xmx512m", *options, "-jar", str(jar)]
        with _running(command, dict(os.environ), folder, f"http://127.0.0.1:{port}/api/v2/config"):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(
    command: list[str], environment: dict[str, str], folder: str, url: str
) -> Iterator[None]:
    log = Path(folder) / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, cwd=folder, env=environment
        ) as process,
    ):
        try:
            until = time.monotonic() + _START_SECONDS
            while not _answers(url):
                assert process.poll() is None, f"The server ended: {log.read_text()[-2000:]}"
                assert time.monotonic() < until, (
                    f"The server did not start: {log.read_text()[-2000:]}"
                )
                time.sleep(0.3)
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _rest_jars() -> Path:
    jars = _FOLDER / "iceberg-rest"
    if not jars.exists():
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version><classifier>{classifier}</classifier></dependency>"
            for group, name, version, classifier in _REST
        ).replace("<classifier></classifier>", "")
        pom = (
            "<project><modelVersion>4.0.0</modelVersion><groupId>lumos</groupId>"
            "<artifactId>servers</artifactId><version>1</version>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        scratch = _FOLDER / f"iceberg-rest.{os.getpid()}"
        scratch.mkdir(parents=True)
        (scratch / "pom.xml").write_text(pom)
        _maven(
            "-f", f"{scratch}/pom.xml", "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DoutputDirectory={scratch}",
        )  # fmt: skip
        scratch.rename(jars)
    return jars


def _nessie_jar() -> Path:
    jar = _FOLDER / "nessie" / f"nessie-quarkus-{_NESSIE}-runner.jar"
    if not jar.exists():
        _maven(
            "dependency:copy",
            f"-Dartifact=org.projectnessie.nessie:nessie-quarkus:{_NESSIE}:jar:runner",
            f"-DoutputDirectory={jar.parent}",
        )
    return jar


def _newer_java() -> str:
    """A Java that runs Nessie; skips the test where there is none."""
    installed = sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    for java in [*filter(None, [shutil.which("java")]), *map(str, installed)]:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        version = re.search(r'version "(\d+)', printed.stderr)
        if version is not None and int(version[1]) >= _NESSIE_JAVA:
            return java
    pytest.skip(f"Nessie needs Java {_NESSIE_JAVA}, which is not here.")


def _maven(*arguments: str) -> None:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"There is no {tool} here.")
    done = subprocess.run(
        ["mvn", "-q", "-B", *arguments], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        pytest.skip(f"Maven cannot fetch the server: {(done.stdout + done.stderr)[-300:]}")
