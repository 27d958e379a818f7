"""The queries and tables of TPC-H and TPC-DS, from the source archive of the pinned sqlglot."""

import gzip
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_FOLDER = _ROOT / "build" / "tpc"


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Queries by number; columns by table."""

    queries: dict[int, str]
    tables: dict[str, list[str]]


def load(name: str) -> Benchmark:
    """`tpc-h` or `tpc-ds`; the test is skipped where the archive cannot be had."""
    files = next(_FOLDER.glob(f"sqlglot-*/tests/fixtures/optimizer/{name}"), None)
    if files is None:
        _fetch()
        files = next(_FOLDER.glob(f"sqlglot-*/tests/fixtures/optimizer/{name}"))
    text = (files / f"{name}.sql").read_text(encoding="utf-8")
    # After each query follows how sqlglot writes it once optimised.
    parts = re.split(rf"^-+\n-- {name.upper()} (\d+)\n-+\n(?:#.*\n)*", text, flags=re.MULTILINE)
    return Benchmark(
        queries={
            int(number): both.partition(";")[0]
            for number, both in zip(parts[1::2], parts[2::2], strict=True)
        },
        tables={
            path.name.removesuffix(".csv.gz"): _header(path) for path in files.glob("*.csv.gz")
        },
    )


def _header(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        names = next(lines).strip().split("|")
    # Tables and queries are of different issues of TPC-DS, which differ in this one name.
    return ["c_last_review_date" if name == "c_last_review_date_sk" else name for name in names]


def _fetch() -> None:
    """Pins version and hash as requirements.lock does."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    lock = (_ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.search(r"^sqlglot==.*\\\n(?:    --hash=.*\n)+", lock, flags=re.MULTILINE)
    assert pinned is not None
    requirement = _FOLDER / "requirement.txt"
    requirement.write_text(pinned[0], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", requirement,
         "--dest", _FOLDER],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        pytest.skip(f"sqlglot's source archive cannot be had here: {last[-300:]}")
    with tarfile.open(next(_FOLDER.glob("sqlglot-*.tar.gz"))) as archive:
        archive.extractall(
            _FOLDER,
            filter="data",
            members=[each for each in archive if "/fixtures/optimizer/tpc-" in each.name],
        )
