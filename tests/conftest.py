"""Facts that several suites share: one small Spark session, and a folder to work in."""

import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lumos.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the whole run; everything that wants one finds it active."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    with spark_session(master="local[2]", settings=settings) as session:
        yield session


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without Lumos variables in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("LUMOS_CONFIG", "LUMOS_PLATFORM", "LUMOS_DEBUG", "DATAHUB_GMS_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


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


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """The URL of an empty database on that server."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{postgres.rpartition('/')[0]}/{name}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
