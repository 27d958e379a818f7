"""A class-data-sharing archive: Java starts Spark in half the time from it.

It is some 160 MB in the user's cache folder, made once in the background after the first use,
made anew when Java or Spark change, and done without in silence where it cannot be written.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

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
            [sys.executable, "-m", "lumos.discovery.class_archive", java, str(spark_home)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
