"""A storage that does not answer fails the scans that need it, and nothing else."""

import socket
from pathlib import Path

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from pyspark.sql import SparkSession

from files import write_text
from lumos import Lumos
from lumos.discovery.lake.manifest import ManifestStore, ScanManifest
from lumos.discovery.scans import StateNotUsable
from lumos.discovery.targets import ScanFailed
from lumos.spark.session import SparkLost, spark_session
from lumos.storage import StorageAccess
from lumos.storage.errors import StorageUnreachable

pytestmark = pytest.mark.usefixtures("spark", "workplace")


@pytest.fixture
def unreachable_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets the state of the first root that is scanned be out of reach."""
    read = ManifestStore.read
    failed: list[str] = []

    def read_later(manifests: ManifestStore, name: str | None) -> ScanManifest:
        if not failed:
            failed.append(manifests.parts)
            raise StorageUnreachable("the endpoint does not answer")
        return read(manifests, name)

    monkeypatch.setattr(ManifestStore, "read", read_later)
    return failed


def test_an_unreachable_storage_fails_one_root_and_the_others_are_scanned(
    tmp_path: Path, unreachable_once: list[str]
) -> None:
    for name in ("a", "b"):
        write_text(tmp_path / name / "users.csv", ["id", "1"])
    report = Lumos().ingest(tmp_path / "a", tmp_path / "b")
    assert len(unreachable_once) == 1
    assert [each.urn for each in report.datasets] == [f"lumos://file{tmp_path}/b/users.csv"]
    (problem,) = report.problems
    assert (problem.path, problem.code) == (str(tmp_path / "a"), "source_failed")
    assert problem.reason.startswith(
        f"The scan of {tmp_path}/a failed: the endpoint does not answer."
    )


@pytest.mark.usefixtures("unreachable_once")
def test_an_unreachable_storage_is_not_a_lost_jvm(tmp_path: Path) -> None:
    write_text(tmp_path / "a/users.csv", ["id", "1"])
    with pytest.raises(ScanFailed, match="the endpoint does not answer"):
        Lumos().ingest(tmp_path / "a")


@pytest.mark.usefixtures("unreachable_once")
def test_state_that_cannot_be_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "a/users.csv", ["id", "1"])
    checks: list[str] = []

    def check_state(state: str, _access: StorageAccess) -> None:
        checks.append(state)
        if len(checks) > 1:
            raise StateNotUsable(state, StorageUnreachable("the endpoint does not answer"))

    monkeypatch.setattr("lumos.discovery.scans.check_state", check_state)
    with pytest.raises(StateNotUsable, match=r"state_uri .*: the endpoint does not answer"):
        Lumos().ingest(tmp_path / "a")


@pytest.mark.parametrize(
    "problem", [StorageUnreachable("no answer"), ConnectionResetError(104, "x")]
)
def test_a_connection_that_is_not_spark_s_stays_what_it_is(problem: OSError) -> None:
    with pytest.raises(type(problem)) as raised, spark_session(master="local[1]", settings={}):
        raise problem
    assert raised.value is problem


def test_a_connection_to_the_jvm_that_is_refused_is_a_lost_jvm(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gateway = ClientServer(
        java_parameters=JavaParameters(port=port, auto_convert=True),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    with pytest.raises(SparkLost), spark_session(master="local[1]", settings={}):
        gateway.jvm.java.lang.System.currentTimeMillis()
