"""A real Kafka 4.3.1 broker and a real Apicurio registry 3.3.3 on this machine.

Both come from Maven Central into build/ with the Ivy that Spark has, with their checksums: 290 MB,
once. The broker keeps its metadata itself (KRaft), has one listener on the loopback interface, and
ends with the test. The registry keeps its schemas in memory.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

KAFKA = "4.3.1"
REGISTRY = "3.3.3"
_BUILD = Path(__file__).parents[2] / "build"
_JAVA_FOR_REGISTRY = Path("/usr/lib/jvm/temurin-25-jdk-amd64/bin/java")
_SECONDS = 300
# Of all jars together: the lines that `sha256sum *` writes for them.
_SHA256_OF_JARS = "e23b720edab27ce33b9f6ee8377f3437f661cab680c6b9d826571783d8658b54"
_SHA256_OF_REGISTRY = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
_KAFKA_WANTED = f"""<ivy-module version="2.0"><info organisation="lumos" module="servers"/><dependencies>
  <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA}" conf="default"/>
  <dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA}" conf="default"/>
</dependencies></ivy-module>"""
_REGISTRY_WANTED = f"""<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">
<info organisation="lumos" module="servers"/><dependencies>
  <dependency org="io.apicurio" name="apicurio-registry-app" rev="{REGISTRY}" transitive="false">
    <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" e:classifier="all"/>
  </dependency>
</dependencies></ivy-module>"""
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal}
listener.security.protocol.map=CLIENT:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def kafka_broker(
    *, protocol: str = "PLAINTEXT", settings: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """The addresses of a broker: for clients with this protocol, and without any login.

    Skips the test, saying why, where no broker can be had.
    """
    jars = _kafka_jars()
    with tempfile.TemporaryDirectory(prefix="lumos-kafka-") as name, ExitStack() as stack:
        folder = Path(name)
        client, internal, controller = _free_ports(3)
        text = _PROPERTIES.format(
            client=client, internal=internal, controller=controller, protocol=protocol,
            data=folder / "data",
        )  # fmt: skip
        text += "".join(f"{key}={value}\n" for key, value in (settings or {}).items())
        file = folder / "server.properties"
        file.write_text(text)
        output = stack.enter_context((folder / "output").open("wb"))
        java = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        cluster = "".join(reversed(uuid.uuid4().hex))[:22]
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", file],
            check=True, stdout=output, stderr=output, cwd=folder, timeout=_SECONDS,
        )  # fmt: skip
        process = subprocess.Popen(
            [*java, "kafka.Kafka", file],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder,
        )  # fmt: skip
        try:
            _wait_for_broker(f"127.0.0.1:{internal}", process, folder / "output")
            yield f"127.0.0.1:{client}", f"127.0.0.1:{internal}"
        finally:
            process.kill()
            process.wait(timeout=60)


@contextmanager
def schema_registry() -> Iterator[str]:
    """The address of a registry with the API of Confluent; skips the test where none can be had."""
    folder = _registry_folder()
    (port,) = _free_ports(1)
    with tempfile.TemporaryDirectory(prefix="lumos-registry-") as name, ExitStack() as stack:
        output = stack.enter_context((Path(name) / "output").open("wb"))
        jar = next(folder.rglob("quarkus-run.jar"), None)
        assert jar is not None, f"{folder} has no quarkus-run.jar"
        command = [
            _JAVA_FOR_REGISTRY, "-Xmx400m", f"-Dquarkus.http.port={port}",
            "-Dquarkus.http.host=127.0.0.1", "-jar", jar,
        ]  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=name
        )
        try:
            address = f"http://127.0.0.1:{port}/apis/ccompat/v7"
            _wait_for_registry(address, process, Path(name) / "output")
            yield address
        finally:
            process.kill()
            process.wait(timeout=60)


def register(address: str, subject: str, schema: object, **facts: object) -> int:
    """Register a schema and return its id."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return int(
        _call("POST", f"{address}/subjects/{subject}/versions", {"schema": text, **facts})["id"]
    )


def set_compatibility(address: str, mode: str, subject: str = "") -> None:
    """Set the compatibility mode of a subject, or of the registry."""
    _call("PUT", f"{address}/config/{subject}".rstrip("/"), {"compatibility": mode})


def delete_subject(address: str, subject: str) -> None:
    """Delete a subject."""
    _call("DELETE", f"{address}/subjects/{subject}", None)


def _call(method: str, url: str, body: object) -> dict[str, object]:
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        found = json.loads(response.read() or b"{}")
        return found if isinstance(found, dict) else {}


def _wait_for_broker(address: str, process: "subprocess.Popen[bytes]", output: Path) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    deadline = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            client.list_topics(timeout=2)
            return
        except KafkaException:
            time.sleep(0.5)
    raise AssertionError(f"Kafka did not start: {output.read_text(errors='replace')[-3000:]}")


def _wait_for_registry(address: str, process: "subprocess.Popen[bytes]", output: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/subjects", timeout=10):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(
        f"The registry did not start: {output.read_text(errors='replace')[-3000:]}"
    )


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _kafka_jars() -> Path:
    jars = _BUILD / "kafka" / "jars"
    if not jars.exists():
        if shutil.which("java") is None:
            pytest.skip("There is no java here.")
        pattern = "[artifact]-[revision].[ext]"
        problem = _fetch(_BUILD / "kafka", _KAFKA_WANTED, pattern, "jar", "bundle")
        if problem is not None:
            pytest.skip(f"Kafka {KAFKA} cannot be had here: {problem}")
        (_BUILD / "kafka" / "fetched").rename(jars)
    lines = "".join(
        f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n"
        for jar in sorted(jars.glob("*.jar"))
    )
    digest = hashlib.sha256(lines.encode()).hexdigest()
    assert digest == _SHA256_OF_JARS, f"{jars} is not what was published: {digest}"
    return jars


def _registry_folder() -> Path:
    if not _JAVA_FOR_REGISTRY.exists():
        pytest.skip("The registry needs Java 25, which is not installed here.")
    unpacked = _BUILD / "apicurio" / "unpacked"
    if not unpacked.exists():
        pattern = "[artifact]-[revision].[ext]"
        problem = _fetch(_BUILD / "apicurio", _REGISTRY_WANTED, pattern)
        if problem is not None:
            pytest.skip(f"Apicurio {REGISTRY} cannot be had here: {problem}")
        archive = _BUILD / "apicurio" / "fetched" / f"apicurio-registry-app-{REGISTRY}.tar.gz"
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        assert digest == _SHA256_OF_REGISTRY, f"{archive} is not what was published: {digest}"
        scratch = _BUILD / "apicurio" / f"unpacked.{os.getpid()}"
        with tarfile.open(archive) as found:
            found.extractall(scratch, filter="data")
        scratch.rename(unpacked)
    return unpacked


def _fetch(folder: Path, wanted: str, pattern: str, *types: str) -> str | None:
    """Bring artifacts with the Ivy that Spark has; says what went wrong."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ivy.xml").write_text(wanted, encoding="utf-8")
    command = [
        "java", "-jar", ivy, "-warn", *(("-types", *types) if types else ()), "-confs", "default",
        "-cache", folder / "ivy", "-ivy", folder / "ivy.xml",
        "-retrieve", folder / "fetched" / pattern,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if done.returncode or not (folder / "fetched").exists():
        return re.sub(r"\s+", " ", done.stdout + done.stderr)[-300:] or "nothing came"
    shutil.rmtree(folder / "ivy", ignore_errors=True)
    return None
