"""Tables that Delta's and Hudi's own libraries are tested with: as many rows as these count."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from corpora import sdist

from .test_tables import measured

DELTA = "deltalake", "1.6.6"
HUDI = "hudi", "0.5.0", "dc8e1f3405d262491b97e8f009bcae2cbd66279dd2a8300b738ecdc3d9cba51d"


def rows_by_delta(root: Path) -> int | None:
    """What the library counts in all data files; nothing where it cannot, or some are not there."""
    try:
        table = DeltaTable(str(root))
        if not all(Path(uri.removeprefix("file://")).exists() for uri in table.file_uris()):
            return None
        counted = QueryBuilder().register("t", table).execute("SELECT count(*) AS n FROM t")
        number: int = counted.read_all()["n"][0].as_py()
    except (DeltaError, OSError):
        return None
    return number


@pytest.mark.slow
def test_published_delta_tables_have_the_rows_that_their_library_counts() -> None:
    from formats.tables.test_delta_published import SHA256

    compared = 0
    for log in sorted(sdist(*DELTA, SHA256).rglob("_delta_log")):
        expected = rows_by_delta(log.parent)
        if expected is None:
            continue
        found = measured("delta", log.parent)[0]
        assert (found.rows, found.problems.listed) == (expected, []), log
        assert not any(tally.misfits for tally in found.tallies), log
        compared += 1
    assert compared >= 35


@pytest.mark.slow
def test_published_hudi_tables_have_the_rows_that_their_library_counts(tmp_path: Path) -> None:
    from hudi import HudiTableBuilder

    compared = 0
    for number, archive in enumerate(sorted(sdist(*HUDI).rglob("crates/test/data/**/*.zip"))):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(tmp_path / str(number))
        (properties,) = (tmp_path / str(number)).glob("[!_]*/.hoodie/hoodie.properties")
        root = properties.parents[1]
        table: Any = HudiTableBuilder.from_base_uri(str(root)).build()
        expected = sum(batch.num_rows for batch in table.read())
        found = measured("hudi", root)[0]
        if "lance" in archive.stem:
            assert found.problems.listed, archive
            continue
        assert (found.rows, found.problems.listed) == (expected, []), archive
        compared += 1
    assert compared == 67
