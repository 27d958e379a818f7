"""Builds the class-data-sharing archive of `lumos.spark.jvm` from a small scan."""

import contextlib
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lumos.spark.jvm import archive_file


def build(java: str, spark_home: Path) -> Path | None:
    """Build the archive by running a small job, unless another process is building it."""
    file = archive_file(java, spark_home)
    if file is None:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive_lock(file.with_suffix(".lock")) as is_locked:
        if not is_locked or file.exists():
            return file if file.exists() else None
        unfinished = file.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        _scan_and_archive(unfinished)
        if not unfinished.exists():
            return None
        _delete_older(file)
        unfinished.rename(file)
        return file


_MAX_OTHER_ARCHIVES: Final = 3


def _delete_older(file: Path) -> None:
    """Delete older archives of this installation, and all but the newest of other installations."""
    own_prefix = file.name.rpartition("-")[0]
    others = sorted(file.parent.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime)
    retained = [path for path in others if not path.name.startswith(own_prefix)][
        -_MAX_OTHER_ARCHIVES:
    ]
    for path in others:
        if path not in retained:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _exclusive_lock(lock: Path) -> Iterator[bool]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _scan_and_archive(file: Path) -> None:
    """Scan a tiny lake, so that the archive has the classes that a scan loads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lumos.discovery.lake.job import scan_lake
    from lumos.spark.session import archiving_session
    from lumos.storage import FileSelection

    with tempfile.TemporaryDirectory(prefix="lumos-") as folder, archiving_session(file) as spark:
        lake, state = Path(folder) / "lake", f"{folder}/state"
        (lake / "t" / "k=1").mkdir(parents=True)
        pq.write_table(pa.table({"a": [1], "b": ["x"]}), lake / "t" / "k=1" / "part-0.parquet")
        (lake / "u.csv").write_text("a,b\n1,x\n")
        selection = FileSelection(str(lake))
        scan_lake(spark, selection, state=state, before=None, after="1")
        scan_lake(spark, selection, state=state, before="1", after="2")


if __name__ == "__main__":
    # The parent process is scanning, which is more urgent than the archive.
    os.nice(10)
    build(sys.argv[1], Path(sys.argv[2]))
