"""A real Hadoop file system with two name nodes, of which one is active, on this machine.

The jars of Hadoop's mini cluster come from Maven Central into build/, each with its checksum.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

_FOLDER = Path(__file__).parents[2] / "build" / "hadoop"
# In the order of the class path. Java has no JAXB any more, which WebHDFS still wants.
_JARS = (
    ("org.apache.hadoop", "hadoop-client-api", "3.4.1",
     "a964d4daa054c9615bbafb4553efbb140fa7fb9ac6f358a24393f183a5703438"),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.4.1",
     "f6a800a159f918670db533606d33560d6c13b7e13f14eda493280ae33b9eeb2f"),
    ("org.apache.hadoop", "hadoop-client-minicluster", "3.4.1",
     "5b90be54a39d856f237a4530e25f62aea4b67c180c73b5cfb1aff35c502b2d29"),
    ("commons-logging", "commons-logging", "1.2",
     "daddea1ea0be0f56978ab3006b8ac92834afeefbd9b7e4e6316fca57df0fa636"),
    ("org.slf4j", "slf4j-api", "1.7.36",
     "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0"),
    ("javax.xml.bind", "jaxb-api", "2.3.1",
     "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06"),
    ("javax.activation", "javax.activation-api", "1.2.0",
     "43fdef0b5b6ceb31b0424b208b930c74ab58fac2ceeb7b3f6fd3aeb8b5ca4393"),
)  # fmt: skip
_PROGRAM = """
import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;

public class Cluster {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("hdfs.minidfs.basedir", arguments[0]);
        settings.setInt("dfs.replication", 1);
        settings.setInt("dfs.ls.limit", 50);
        settings.setBoolean("dfs.namenode.delegation.token.always-use", true);
        settings.setInt("dfs.ha.tail-edits.period", 1);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings)
            .nnTopology(MiniDFSNNTopology.simpleHATopology()).numDataNodes(1).build();
        cluster.waitActive();
        int active = 0;
        cluster.transitionToActive(active);
        System.out.println("READY " + cluster.getHttpUri(0) + " " + cluster.getHttpUri(1));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        while (commands.readLine() != null) {
            cluster.transitionToStandby(active);
            active = 1 - active;
            cluster.transitionToActive(active);
            System.out.println("DONE");
        }
        cluster.shutdown();
    }
}
"""


class Cluster(NamedTuple):
    """The addresses of WebHDFS at both name nodes, and the process behind them."""

    urls: tuple[str, ...]
    process: "subprocess.Popen[str]"

    def fail_over(self) -> None:
        """Makes the other name node the active one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("fail over\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "DONE\n"


@contextmanager
def hdfs_cluster() -> Iterator[Cluster]:
    """A cluster of its own; skips the test, saying why, where none can be had."""
    path = _class_path()
    with tempfile.TemporaryDirectory() as folder:
        command = ["java", "-Xmx768m", "-cp", path, "Cluster", folder]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                word, *urls = process.stdout.readline().split() or [""]
                assert word == "READY", "The cluster did not start."
                yield Cluster(tuple(urls), process)
            finally:
                # It ends when nobody listens any more.
                process.stdin.close()
                try:
                    process.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()


def _class_path() -> str:
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            pytest.skip(f"There is no {tool} here.")
    jars = [_jar(*each) for each in _JARS]
    path = ":".join(map(str, jars))
    classes = _FOLDER / "classes"
    source = classes / "Cluster.java"
    if not source.exists() or source.read_text() != _PROGRAM:
        classes.mkdir(exist_ok=True)
        source.write_text(_PROGRAM)
        subprocess.run(["javac", "-cp", path, "-d", classes, source], check=True)
    return f"{classes}:{path}"


def _jar(organisation: str, name: str, version: str, sha256: str) -> Path:
    jar = _FOLDER / f"{name}-{version}.jar"
    if not jar.exists():
        problem = _fetch(organisation, name, version)
        if problem is not None:
            pytest.skip(f"{jar.name} cannot be had here: {problem}")
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    assert digest == sha256, f"{jar} is not what was published: {digest}"
    return jar


_WANTED = """<ivy-module version="2.0"><info organisation="lumos" module="servers"/>
  <dependencies><dependency org="{organisation}" name="{name}" rev="{version}" transitive="false">
    <artifact name="{name}" type="jar" ext="jar"/>
  </dependency></dependencies></ivy-module>"""


def _fetch(organisation: str, name: str, version: str) -> str | None:
    """Brings a jar with the Ivy that Spark has; says what went wrong."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    cache = _FOLDER / "ivy"
    cache.mkdir(parents=True, exist_ok=True)
    wanted = _WANTED.format(organisation=organisation, name=name, version=version)
    (cache / f"{name}.xml").write_text(wanted, encoding="utf-8")
    command = [
        "java", "-jar", ivy, "-warn", "-cache", cache, "-ivy", cache / f"{name}.xml",
        "-retrieve", _FOLDER / "[artifact]-[revision].[ext]",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if not (_FOLDER / f"{name}-{version}.jar").exists():
        return re.sub(r"\s+", " ", done.stdout + done.stderr)[-300:] or "nothing came"
    return None
