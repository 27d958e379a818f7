"""A real Airflow 3: its API server on SQLite, with two DAGs, on this machine.

The packages come from PyPI into build/airflow. `python -m servers.airflow` from tests/ fetches and
starts it and says where.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import pytest

PACKAGES = ("apache-airflow==3.3.2",)
_FOLDER = Path(__file__).parents[2] / "build" / "airflow"
_AIRFLOW = _FOLDER / "bin" / "airflow"
_SECONDS_TO_FETCH = 1800
_SECONDS_TO_START = 240
DAGS = """
from datetime import datetime

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, Asset

orders = Asset("s3://lake/raw/orders")
daily = Asset(name="daily_revenue", uri="s3://lake/marts/daily_revenue")
with DAG(
    "sales_daily", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False,
    default_args={"owner": "finance-team"}, description="Aggregates orders", tags=["sales"],
):
    extract = PythonOperator(task_id="extract", python_callable=lambda: 1, outlets=[orders])
    aggregate = PythonOperator(
        task_id="aggregate", python_callable=lambda: 2, inlets=[orders], outlets=[daily]
    )
    extract >> aggregate
with DAG("report", schedule=[daily], start_date=datetime(2026, 1, 1),
         default_args={"owner": "bi-team"}):
    PythonOperator(
        task_id="send", python_callable=lambda: 3, outlets=[Asset("s3://lake/reports/daily")]
    )
"""


class AirflowServer(NamedTuple):
    """The address of the server, and the passwords of its users `admin` and `viewer`."""

    url: str
    passwords: dict[str, str]


@contextmanager
def airflow_server() -> Iterator[AirflowServer]:
    """A server with one run of `sales_daily`; skips the test, saying why, where it cannot be had."""
    _install()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "dags").mkdir()
        (home / "dags" / "sales.py").write_text(DAGS, encoding="utf-8")
        environment = {
            **os.environ,
            "AIRFLOW_HOME": name,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        }
        for command in (
            ("db", "migrate"),
            ("dags", "reserialize"),
            ("dags", "test", "sales_daily", "2026-01-02"),
        ):
            done = subprocess.run(
                [_AIRFLOW, *command], env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        port = _free_port()
        command_line = [str(_AIRFLOW), "api-server", "--host", "127.0.0.1", "--port", str(port),
                        "--workers", "1"]  # fmt: skip
        log = home / "api-server.log"
        with (
            log.open("w") as output,
            subprocess.Popen(
                command_line, env=environment, stdout=output, stderr=output
            ) as process,
        ):
            try:
                url = f"http://127.0.0.1:{port}"
                _wait_for(f"{url}/api/v2/version", process, log)
                passwords = home / "simple_auth_manager_passwords.json.generated"
                yield AirflowServer(url, json.loads(passwords.read_text()))
            finally:
                process.terminate()
                try:
                    process.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()


def _install() -> None:
    done = _FOLDER / "fetched"
    if done.exists() and done.read_text() == "\n".join(PACKAGES):
        return
    for command in (
        (sys.executable, "-m", "venv", "--clear", str(_FOLDER)),
        (str(_FOLDER / "bin" / "pip"), "install", "-q", *PACKAGES),
    ):
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_SECONDS_TO_FETCH
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            pytest.skip(f"Airflow cannot be had here: {problem}")
        if result.returncode:
            pytest.skip(f"Airflow cannot be had here: {(result.stdout + result.stderr)[-300:]}")
    done.write_text("\n".join(PACKAGES))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(_SECONDS_TO_START):
        with suppress(URLError, OSError), urlopen(url) as answer:
            assert answer.status == 200
            return
        assert process.poll() is None, log.read_text()[-3000:]
        time.sleep(1)
    raise AssertionError("Airflow did not start.")


if __name__ == "__main__":
    with airflow_server() as started:
        sys.stdout.write(f"{started.url} {started.passwords}\n")
        sys.stdout.flush()
        sys.stdin.read()
