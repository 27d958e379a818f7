"""A server that speaks MongoDB's wire protocol: mongo-java-server, from Maven Central into build/.

It is not MongoDB: it knows neither validators nor views, nor users. It keeps all in memory.
`python -m servers.mongo MEGABYTES` says where it listens, and ends when its standard input does.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

VERSION = "1.47.0"
# Of all jars together: the lines that `sha256sum *` writes for them.
_SHA256 = "033668169627aca10891808980c0218755d3759143f479375c8f10e0987a368e"
_FOLDER = Path(__file__).parents[2] / "build" / "mongo-java-server"
# The library says that it is older than drivers of today want it to be, though it does what they
# ask for here.
_PROGRAM = """
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

public class Served {
    public static void main(String[] arguments) throws Exception {
        MongoVersion version = new MongoVersion() {
            public List<Integer> getVersionArray() { return List.of(5, 0, 0, 0); }
            public int getWireVersion() { return 13; }
        };
        MongoServer server = new MongoServer(new MemoryBackend().version(version));
        System.out.println(server.bindAndGetConnectionString());
        System.out.flush();
        while (System.in.read() >= 0) { }
        server.shutdownNow();
    }
}
"""
# Its own stage sorts by a coin that is thrown anew for every comparison: no fair sample, and now and
# then no sample at all, since Java's sort complains. This one stands before it on the class path.
_SAMPLE = """
package de.bwaldvogel.mongo.backend.aggregation.stage;

import de.bwaldvogel.mongo.bson.Document;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

public class SampleStage implements AggregationStage {
    private final int size;

    public SampleStage(Object sample) {
        size = ((Number) ((Document) sample).get("size")).intValue();
    }

    public String name() { return "$sample"; }

    public Stream<Document> apply(Stream<Document> documents) {
        List<Document> all = documents.collect(Collectors.toList());
        Collections.shuffle(all);
        return all.stream().limit(size);
    }
}
"""
_SOURCES = {"Served.java": _PROGRAM, "SampleStage.java": _SAMPLE}


@contextmanager
def mongo_server(*, megabytes: int = 256) -> Iterator[str]:
    """The address of a server of its own; skips the test, saying why, where none can be had."""
    classes = _classes()
    command = ["java", f"-Xmx{megabytes}m", "-cp", f"{classes}:{classes.parent}/jars/*", "Served"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("mongodb://"), "The server did not start."
            yield address
        finally:
            # It ends when nobody listens any more.
            process.stdin.close()
            process.wait(timeout=30)


def _classes() -> Path:
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            pytest.skip(f"There is no {tool} here.")
    jars = _FOLDER / "jars"
    if not jars.exists():
        problem = _fetch(jars)
        if problem is not None:
            pytest.skip(f"mongo-java-server cannot be had here: {problem}")
    lines = "".join(
        f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n"
        for jar in sorted(jars.glob("*.jar"))
    )
    digest = hashlib.sha256(lines.encode()).hexdigest()
    assert digest == _SHA256, f"{jars} is not what was published: {digest}"
    version = hashlib.sha256("".join(_SOURCES.values()).encode()).hexdigest()[:12]
    classes = _FOLDER / f"classes-{version}"
    if not classes.exists():
        scratch = _FOLDER / f"classes.{os.getpid()}"
        scratch.mkdir()
        for name, text in _SOURCES.items():
            (scratch / name).write_text(text)
        sources = [scratch / name for name in _SOURCES]
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", scratch, *sources], check=True)
        scratch.rename(classes)
    return classes


def _fetch(jars: Path) -> str | None:
    """Brings the jars with the Ivy that Spark has; says what went wrong."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    scratch = _FOLDER / "fetched"
    command = [
        "java", "-jar", ivy, "-warn", "-types", "jar", "bundle", "-confs", "default",
        "-cache", _FOLDER / "ivy", "-dependency", "de.bwaldvogel", "mongo-java-server", VERSION,
        "-retrieve", scratch / "[artifact]-[revision].[ext]",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if done.returncode or not scratch.exists():
        return re.sub(r"\s+", " ", done.stdout + done.stderr)[-300:] or "nothing came"
    scratch.rename(jars)
    return None


if __name__ == "__main__":
    with mongo_server(megabytes=int(sys.argv[1])) as served:
        sys.stdout.write(f"{served}\n")
        sys.stdout.flush()
        sys.stdin.read()
