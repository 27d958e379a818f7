"""schemathesis sends thousands of requests to every route: no 5xx, nothing undocumented."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.store.tokens import Role
from server.live_server import live_server

PROJECT = Path(__file__).parents[2]
# An environment of its own: its plug-in for pytest would be loaded by every test run.
VERSION = "4.32.5"
FOLDER = PROJECT / "build" / f"schemathesis-{VERSION}"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
# Streams do not end.
LEFT_OUT = "/events$"
IS_TOO_FEW = 1_000


@pytest.fixture(scope="module")
def schemathesis() -> Path:
    command = FOLDER / "bin" / "schemathesis"
    if not command.exists():
        subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
        installed = subprocess.run(
            [FOLDER / "bin" / "pip", "install", "--quiet", f"schemathesis=={VERSION}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode != 0:
            pytest.skip(f"schemathesis cannot be installed here: {installed.stderr[-300:]}")
    return command


@pytest.mark.slow
@pytest.mark.parametrize("role", ["read", "admin"])
def test_every_answer_is_documented_and_none_is_an_error_of_the_server(
    schemathesis: Path, folder: Path, tmp_path: Path, role: Role
) -> None:
    with (folder / "lumos.yaml").open("a", encoding="utf-8") as file:
        file.write("server: {requests_per_minute: 1000000}\n")
    created = Lumos(folder / "lumos.yaml").tokens.create("fuzzer", role=role)
    with live_server(folder, "--require-token", "--workers", "0") as server:
        done = subprocess.run(
            [
                schemathesis, "run", f"{server.url}/openapi.json", "--no-color",
                "--phases", "coverage,fuzzing", "--max-examples", "4", "--seed", "1",
                "--header", f"Authorization: Bearer {created.secret}", "--checks", CHECKS,
                "--exclude-path-regex", LEFT_OUT, "--request-timeout", "60",
            ],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        log = "".join(server.log)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-1_000:]
    found = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert found is not None, done.stdout[-2_000:]
    assert int(found[1]) == int(found[2]) > IS_TOO_FEW
    assert created.secret not in log
