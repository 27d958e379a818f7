"""Facts that several suites share: one small Spark session, and a folder to work in."""

import gc
import logging
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, is_hypothesis_test, settings
from pyspark.sql import SparkSession

from examples import examples
from lumos.spark.session import spark_session
from lumos.store import database as store_database
from replayed_migrations import ReplayedMigrations

if TYPE_CHECKING:
    from databases import MysqlDatabase, PostgresDatabase, PostgresStore
    from recorded_lake import RecordedLake

_measured: set[str] = set()

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile(
    "without a clock",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("without a clock")


def pytest_collection_finish() -> None:
    """Exempts the collected tests and imported modules from garbage collection.

    They stay until the end, and walking them took a tenth of the run.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Some extension modules report objects that are not collected at exit."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measures coverage in the first case of each test only, and in no test of many examples.

    Following every line doubles what a test takes, and further cases seldom reach other lines.
    """
    coverage = Coverage.current()
    test = item.nodeid.partition("[")[0]
    is_of_many_examples = is_hypothesis_test(getattr(item, "function", None))
    if coverage is None or not (test in _measured or is_of_many_examples):
        _measured.add(test)
        return (yield)
    coverage.stop()
    try:
        return (yield)
    finally:
        coverage.start()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the whole run; everything that wants one finds it active."""
    options = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    with spark_session(master="local[2]", settings=options) as session:
        yield session


@pytest.fixture(scope="session", autouse=True)
def _quick_stores() -> Iterator[None]:
    """Most tests want a new store and few of them the way to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_database, "_migrate", ReplayedMigrations(store_database._migrate))
        yield


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Commands that run in this process set up logging; the next test starts without that."""
    logger = logging.getLogger("lumos")
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate = [], True
    yield
    logger.handlers, logger.propagate = before[:2]
    logger.setLevel(before[2])


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without Lumos variables in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("LUMOS_CONFIG", "LUMOS_PLATFORM", "LUMOS_DEBUG", "DATAHUB_GMS_URL",
                 "DATAHUB_GMS_TOKEN", "OPENMETADATA_JWT_TOKEN"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of a server that speaks S3 and takes any key."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(moto: str) -> "Bucket":
    """An empty bucket on that server."""
    import boto3

    name = f"t{uuid.uuid4().hex}"
    session = boto3.Session("key-id", "hush-hush", region_name="us-east-1")
    made = session.resource("s3", endpoint_url=moto).Bucket(name)
    made.create()
    return Bucket(moto, name, made)


class Bucket(NamedTuple):
    """A bucket, and how to put objects into it."""

    endpoint: str
    name: str
    made: Any

    def put(self, key: str, data: bytes) -> None:
        self.made.put_object(Key=key, Body=data)

    def upload(self, folder: Path, prefix: str) -> None:
        """Puts all files of a folder below a prefix."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.put(f"{prefix}/{file.relative_to(folder)}", file.read_bytes())

    def section(self, **facts: object) -> dict[str, object]:
        """The section of a configuration that describes it."""
        return {
            "type": "s3",
            "bucket": self.name,
            "endpoint_url": self.endpoint,
            "access_key_id": "key-id",
            "secret_access_key": "hush-hush",
            **facts,
        }


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a throw-away PostgreSQL server."""
    script = Path(__file__).parents[1] / "scripts" / "postgres"
    # The server's user must be able to reach the folder.
    folder = Path(tempfile.mkdtemp(prefix="lumos-postgres-"))
    folder.chmod(0o755)
    started = subprocess.run(
        [script, "start", folder / "server"], capture_output=True, text=True, check=False
    )
    if started.returncode != 0:
        pytest.skip(f"No PostgreSQL here: {started.stderr.strip()}")
    yield started.stdout.strip()
    subprocess.run([script, "stop", folder / "server"], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _kept_postgres(postgres: str) -> str:
    return _create_database(postgres, "kept")


@pytest.fixture
def emptied_postgres(_kept_postgres: str) -> str:
    """The URL of a database without tables; a new one takes three times as long."""
    import psycopg

    from databases import close_others

    with psycopg.connect(_kept_postgres, autocommit=True) as connection:
        close_others(connection)
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return _kept_postgres


@pytest.fixture(scope="session")
def _kept_store(postgres: str) -> "PostgresStore":
    from databases import PostgresStore

    return PostgresStore(_create_database(postgres, "store"))


@pytest.fixture
def postgres_store(_kept_store: "PostgresStore") -> str:
    """The URL of a store without datasets; creating one takes ten times as long."""
    _kept_store.reset()
    return _kept_store.url


def _create_database(server: str, name: str) -> str:
    import psycopg
    from psycopg import sql

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"{server.rpartition('/')[0]}/{name}"


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """The URL of a new database on that server."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{postgres.rpartition('/')[0]}/{name}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(empty_postgres: str) -> "PostgresDatabase":
    """An empty database on that server, with ways to fill it and to look at it."""
    from databases import PostgresDatabase

    return PostgresDatabase(empty_postgres)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The URL of a throw-away MariaDB server."""
    script = Path(__file__).parents[1] / "scripts" / "mariadb"
    folder = Path(tempfile.mkdtemp(prefix="lumos-mariadb-"))
    started = subprocess.run(
        [script, "start", folder / "server"], capture_output=True, text=True, check=False
    )
    if started.returncode != 0:
        pytest.skip(f"No MariaDB here: {started.stderr.strip()}")
    yield started.stdout.strip()
    subprocess.run([script, "stop", folder / "server"], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mysql_database(mariadb: str) -> "Iterator[MysqlDatabase]":
    """A new database on that server."""
    from databases import MysqlDatabase

    name = f"t{uuid.uuid4().hex[:12]}"
    server = MysqlDatabase(mariadb, "mysql")
    server.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield MysqlDatabase(mariadb, name)
    server.run(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a throw-away Redis server."""
    pytest.importorskip("redis", reason="redis-py is not installed: pip install 'lumos[redis]'")
    script = Path(__file__).parents[1] / "scripts" / "redis"
    folder = Path(tempfile.mkdtemp(prefix="lumos-redis-"))
    command = [script, "start", folder]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    if started.returncode != 0:
        pytest.skip(f"No Redis here: {started.stderr.strip()}")
    yield started.stdout.strip()
    subprocess.run([script, "stop", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, workplace: Path) -> dict[str, object]:
    """The settings of an empty store of each kind."""
    if request.param == "sqlite":
        return {"storage.path": str(workplace / "lumos.db")}
    return {
        "storage.backend": "postgres",
        "storage.connection_string": request.getfixturevalue("postgres_store"),
    }


@pytest.fixture
def seen(stored: dict[str, object]) -> "RecordedLake":
    """A lake that nobody has looked at yet."""
    from lumos import Lumos
    from recorded_lake import RecordedLake

    return RecordedLake(Lumos(overrides=stored))
