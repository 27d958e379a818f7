"""Starts Spark's Python workers with everything a scan needs already imported.

Workers are forks of the daemon, so its imports are not repeated in each worker.
"""

import gc
import sys
from pathlib import Path


def without_zips(path: list[str]) -> list[str]:
    """Return the import path without zips of packages that are also installed as folders.

    Spark puts its zips first. Modules from a zip are compiled at every import, which takes longer
    than everything else that a daemon does before it starts its first worker.
    """
    folders = {Path(entry) for entry in path}
    return [
        entry
        for entry in path
        if not (entry.endswith(".zip") and folders.intersection(Path(entry).parents))
    ]


if __name__ == "__main__":
    sys.path = without_zips(sys.path)

    import pyspark.daemon
    import pyspark.worker

    import lumos.discovery.lake.scan_task  # noqa: F401

    # Imported modules are never freed, and rows of files form no reference cycles, so garbage
    # collection would find almost nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    pyspark.daemon.manager()
