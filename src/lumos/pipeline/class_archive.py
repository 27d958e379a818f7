"""A class-data-sharing archive: Java starts Spark in half the time from it.

It is some 160 MB in the user's cache folder, made once in the background after the first use,
made anew when Java or Spark change, and done without in silence where it cannot be written.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OTHERS_KEPT: Final = 3
OFF: Final = "LUMOS_CLASS_ARCHIVE"
_SILENT: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")


def options(java: str, spark_home: Path, *, archive_to: Path | None = None) -> list[str]:
    """What to tell Java to start from the archive, if there is one, or to make one."""
    if archive_to is not None:
        return [*_SILENT, f"-XX:ArchiveClassesAtExit={archive_to}"]
    file = archive_file(java, spark_home)
    # Path.is_file raises where the folder may not be read.
    if file is None or not os.path.isfile(file):
        return []
    return [*_SILENT, "-Xshare:auto", f"-XX:SharedArchiveFile={file}"]


def archive_file(java: str, spark_home: Path) -> Path | None:
    """Where the archive for this Java and this Spark lies; nothing where it is switched off."""
    if os.environ.get(OFF, "").lower() in ("0", "off", "false"):
        return None
    found = shutil.which(java)
    if found is None:
        return None
    binary = Path(found).resolve()
    try:
        ages = [str(path.stat().st_mtime_ns) for path in (binary, spark_home / "jars")]
        folder = cache_folder()
    except (OSError, RuntimeError):
        # Python raises RuntimeError for a user without a home, as in some containers.
        return None
    installation = _short_hash(str(spark_home))
    return folder / f"spark-{installation}-{_short_hash(str(binary), *ages)}.jsa"


def _short_hash(*facts: str) -> str:
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=6).hexdigest()


def cache_folder() -> Path:
    """The user's cache folder for Lumos."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lumos"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lumos"


def build_if_missing(java: str, spark_home: Path) -> None:
    """Starts making the archive in a process that outlives this one, unless it is there."""
    file = archive_file(java, spark_home)
    if file is None or os.path.exists(file):
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(file.parent, os.W_OK | os.X_OK):
            return
        subprocess.Popen(
            [sys.executable, "-m", "lumos.pipeline.class_archive", java, str(spark_home)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )


def build(java: str, spark_home: Path) -> Path | None:
    """Makes the archive by running a small job; one process at a time, and never half a file."""
    file = archive_file(java, spark_home)
    if file is None:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    with _alone(file.with_suffix(".lock")) as is_alone:
        if not is_alone or file.exists():
            return file if file.exists() else None
        unfinished = file.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        _scan_and_archive(unfinished)
        if not unfinished.exists():
            return None
        _forget_older(file)
        unfinished.rename(file)
        return file


def _forget_older(file: Path) -> None:
    """Removes this installation's older archives, and all but a few of other installations."""
    ours = file.name.rpartition("-")[0]
    others = sorted(file.parent.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime)
    kept = [path for path in others if not path.name.startswith(ours)][-_OTHERS_KEPT:]
    for path in others:
        if path not in kept:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _scan_and_archive(file: Path) -> None:
    """Scans a tiny lake, so that the classes of a scan are the ones that are kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lumos.pipeline.discovery import discover
    from lumos.pipeline.session import archiving_session
    from lumos.storage import Selection

    with tempfile.TemporaryDirectory(prefix="lumos-") as folder, archiving_session(file) as spark:
        lake, state = Path(folder) / "lake", f"{folder}/state"
        (lake / "t" / "k=1").mkdir(parents=True)
        pq.write_table(pa.table({"a": [1], "b": ["x"]}), lake / "t" / "k=1" / "part-0.parquet")
        (lake / "u.csv").write_text("a,b\n1,x\n")
        selection = Selection(str(lake))
        discover(spark, selection, state=state, before=None, after="1")
        discover(spark, selection, state=state, before="1", after="2")


if __name__ == "__main__":
    # Whoever started this is at work; the archive can wait.
    os.nice(10)
    build(sys.argv[1], Path(sys.argv[2]))
