"""A listing of very many objects stays in bounds, whether it is divided well or not at all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .many_keys import Layout, served

_TESTS = Path(__file__).parents[1]


def scanned(count: int, layout: Layout, state: Path, *, parts: int) -> list[dict[str, float]]:
    with served(count, layout) as server:
        done = subprocess.run(
            [sys.executable, "-m", "faults.million_scan", server.url, str(state), str(parts)],
            cwd=_TESTS,
            capture_output=True,
            text=True,
            check=True,
        )
    measurements: list[dict[str, float]] = json.loads(done.stdout)
    return measurements


@pytest.mark.slow
def test_more_files_than_a_task_holds_come_in_portions_and_stay_known(tmp_path: Path) -> None:
    # One part is the worst: a single stretch, and so a single task, lists everything.
    first, again = scanned(55_000, "flat", tmp_path / "state", parts=1)
    assert (first["listed"], first["read"], first["datasets"]) == (55_000, 55_000, 1)
    assert (again["listed"], again["read"]) == (55_000, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "parts"), [("flat", 1), ("days", 64)])
def test_a_million_objects_are_listed_in_bounded_memory(
    layout: Layout, parts: int, tmp_path: Path
) -> None:
    first, again = scanned(1_000_000, layout, tmp_path / "state", parts=parts)
    assert (first["listed"], first["read"], first["datasets"]) == (1_000_000, 1_000_000, 1)
    assert (again["listed"], again["read"], again["datasets"]) == (1_000_000, 0, 1)
    print(f"{layout}, {parts} parts: {first} then {again}")  # noqa: T201 - the figures are the point
    assert again["peak"] < 400
