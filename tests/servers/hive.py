"""A real Hive metastore 2.3 on Derby, from the jars that PySpark has.

Only one jar is missing there, which comes from Maven Central into build/ with its checksum.
"""

import copy
import hashlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

_FOLDER = Path(__file__).parents[2] / "build" / "hive"
_JAR = "disruptor-3.4.4.jar"
_SHA256 = "1524ed31f13bcabee1b6146e67be30c6317cb94fcd0c7c2f7c7a1f3e82087c51"
_START_SECONDS = 300
_SETTINGS = """<configuration>
  <property><name>javax.jdo.option.ConnectionURL</name>
    <value>jdbc:derby:;databaseName={folder}/derby;create=true</value></property>
  <property><name>javax.jdo.option.ConnectionDriverName</name>
    <value>org.apache.derby.jdbc.EmbeddedDriver</value></property>
  <property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
  <property><name>hive.metastore.schema.verification</name><value>false</value></property>
  <property><name>hive.metastore.warehouse.dir</name><value>{folder}/warehouse</value></property>
  <property><name>hive.metastore.disallow.incompatible.col.type.changes</name>
    <value>false</value></property>
  <property><name>datanucleus.connectionPoolingType</name><value>HikariCP</value></property>
  <property><name>hive.metastore.uris</name><value/></property>
</configuration>"""


class HiveMetastore:
    """A client that writes to a metastore."""

    def __init__(self, uri: str, client: Any) -> None:
        self.uri = uri
        self.client = client

    @classmethod
    @contextmanager
    def connect(cls, uri: str) -> "Iterator[HiveMetastore]":
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport

        host, _, port = uri.removeprefix("thrift://").partition(":")
        transport = TBufferedTransport(TSocket(host, int(port)))
        transport.open()
        try:
            yield cls(uri, Client(TBinaryProtocolAccelerated(transport)))
        finally:
            transport.close()

    def clear(self) -> None:
        """Drops all databases but the default one, without touching files."""
        for database in self.client.get_all_databases():
            for table in self.client.get_all_tables(database):
                self.client.drop_table(database, table, False)
            if database != "default":
                self.client.drop_database(database, False, True)

    def create_database(self, name: str, folder: str | None = None) -> None:
        from hive_metastore.ttypes import Database

        uri = f"file://{folder or tempfile.gettempdir() + '/' + name}"
        self.client.create_database(Database(name=name, locationUri=uri))

    def put(
        self,
        database: str,
        name: str,
        columns: Sequence[tuple[str, str]],
        *,
        keys: Sequence[tuple[str, str]] = (),
        location: str | None = None,
        serde: str = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        **facts: Any,
    ) -> None:
        """A table, or the same table with other columns."""
        from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

        def fields(pairs: Sequence[tuple[str, str]]) -> list[Any]:
            return [FieldSchema(each, type, None) for each, type in pairs]

        descriptor = StorageDescriptor(
            cols=fields(columns),
            location=location or f"file://{tempfile.gettempdir()}/{database}/{name}",
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            serdeInfo=SerDeInfo(serializationLib=serde, parameters={}),
            parameters={}, bucketCols=[], sortCols=[], compressed=False, numBuckets=-1,
        )  # fmt: skip
        facts = {
            "owner": "etl",
            "tableType": "EXTERNAL_TABLE",
            "parameters": {"EXTERNAL": "TRUE"},
            **facts,
        }
        table = Table(
            tableName=name, dbName=database, sd=descriptor, partitionKeys=fields(keys), **facts
        )
        if name.lower() in self.client.get_all_tables(database):
            self.client.alter_table(database, name, table)
        else:
            self.client.create_table(table)

    def add_partitions(self, database: str, table: str, values: dict[tuple[str, ...], str]) -> None:
        """Registers partitions by their values, each with its location."""
        from hive_metastore.ttypes import Partition

        descriptor = self.client.get_table(database, table).sd
        partitions = []
        for each, location in values.items():
            own = copy.copy(descriptor)
            own.location = location
            partitions.append(
                Partition(
                    values=list(each), dbName=database, tableName=table, sd=own, parameters={}
                )
            )
        self.client.add_partitions(partitions)

    def drop(self, database: str, name: str) -> None:
        self.client.drop_table(database, name, False)


@contextmanager
def hive_metastore() -> Iterator[str]:
    """The address of a metastore of its own; skips the test, saying why, where none can be had."""
    jar = _disruptor()
    jars = Path(pyspark.__file__).parent / "jars"
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "conf"
        conf.mkdir()
        (conf / "hive-site.xml").write_text(_SETTINGS.format(folder=folder))
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            "java", "-Xmx768m", f"-Dderby.system.home={folder}", f"-Djava.io.tmpdir={folder}",
            "-cp", f"{conf}:{jars}/*:{jar}",
            "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port),
        ]  # fmt: skip
        log = Path(folder) / "log"
        with (
            log.open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=output, cwd=folder) as process,
        ):
            try:
                _wait_for(port, process, log)
                yield f"thrift://127.0.0.1:{port}"
            finally:
                process.terminate()
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"The metastore did not start: {log.read_text()[-2000:]}")


def _disruptor() -> Path:
    if shutil.which("java") is None:
        pytest.skip("There is no java here.")
    jar = _FOLDER / _JAR
    if not jar.exists() and (problem := _fetch()) is not None:
        pytest.skip(f"{_JAR} cannot be had here: {problem}")
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    assert digest == _SHA256, f"{jar} is not what was published: {digest}"
    return jar


def _fetch() -> str | None:
    """Brings the jar with the Ivy that Spark has; says what went wrong."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    command = [
        "java", "-jar", ivy, "-warn", "-types", "jar", "bundle", "-confs", "default",
        "-cache", _FOLDER / "ivy", "-dependency", "com.lmax", "disruptor", "3.4.4",
        "-retrieve", _FOLDER / "[artifact]-[revision].[ext]",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if not (_FOLDER / _JAR).exists():
        return re.sub(r"\s+", " ", done.stdout + done.stderr)[-300:] or "nothing came"
    return None
