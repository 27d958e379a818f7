"""DataHub's scan of a lake, as the peer of discovery; installed in an environment of its own.

It is told where each table's name stands in the paths, lists every file, and opens one file per
table to infer a schema. Profiling, telemetry, its progress display and its look for a newer
version over the network are off.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.lakes import KEPT, Lake

REQUIREMENT = "acryl-datahub[s3]>=1.7,<1.8"
_ENVIRONMENT = KEPT / "datahub-venv"
_PYTHON = _ENVIRONMENT / "bin" / "python"
# The look for a newer version waits for answers for up to three seconds after the scan.
_COMMAND = """
import sys
from datahub.upgrade import upgrade
upgrade.check_upgrade_post = lambda *_, **__: None
from datahub.entrypoints import main
sys.exit(main())
"""


class PeerFailed(Exception):
    """DataHub did not find what the lake holds."""


def install() -> str:
    """Makes the environment where there is none; gives DataHub's name and version."""
    installed = _ENVIRONMENT / "installed"
    if not installed.exists():
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, _ENVIRONMENT], check=True
        )
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", _PYTHON,
             REQUIREMENT],
            check=True,
        )  # fmt: skip
        installed.touch()
    version = "from importlib.metadata import version; print(version('acryl-datahub'))"
    done = subprocess.run([_PYTHON, "-c", version], capture_output=True, text=True, check=True)
    return f"acryl-datahub {done.stdout.strip()}"


def seconds(lake: Lake) -> float:
    """How long DataHub takes for a lake, from process start to exit."""
    with tempfile.TemporaryDirectory() as folder:
        recipe, found = Path(folder) / "recipe.json", Path(folder) / "found.json"
        recipe.write_text(json.dumps(_recipe(lake, found)), encoding="utf-8")
        started = time.perf_counter()
        done = subprocess.run(
            [_PYTHON, "-c", _COMMAND, "ingest", "run", "--config", recipe,
             "--no-default-report", "--no-progress", "--no-spinner"],
            cwd=folder,
            env={**os.environ, "DATAHUB_TELEMETRY_ENABLED": "false"},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        taken = time.perf_counter() - started
        if done.returncode != 0:
            raise PeerFailed(done.stderr[-3000:])
        _check(lake, json.loads(found.read_text(encoding="utf-8")))
    return taken


def _recipe(lake: Lake, found: Path) -> dict[str, Any]:
    pattern = f"{{table}}/{{partition_key[0]}}={{partition[0]}}/*.{lake.suffix}"
    return {
        "source": {
            "type": "s3",
            "config": {
                "platform": "file",
                "path_specs": [{"include": f"{lake.root}/{pattern}"}],
                "profiling": {"enabled": False},
            },
        },
        "sink": {"type": "file", "config": {"filename": str(found)}},
    }


def _check(lake: Lake, events: list[dict[str, Any]]) -> None:
    schemas = {event["entityUrn"] for event in events if event["aspectName"] == "schemaMetadata"}
    files = {
        event["entityUrn"]: int(event["aspect"]["json"]["customProperties"]["number_of_files"])
        for event in events
        if event["aspectName"] == "datasetProperties" and event["changeType"] == "UPSERT"
    }
    if (len(schemas), sum(files.values())) != (lake.datasets, lake.files):
        raise PeerFailed(
            f"{len(schemas)} schemas from {sum(files.values())} files were found, "
            f"{lake.datasets} from {lake.files} are there."
        )
