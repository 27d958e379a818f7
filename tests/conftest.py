"""Facts that several suites share: one small Spark session, and a folder to work in."""

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
