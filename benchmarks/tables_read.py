"""One reading of one table, in a process of its own.

It prints seconds, memory and what was found as JSON. Imports are made before the clock starts.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ALL = 1_000_000


def lumos(kind: str, root: str, memory: str) -> Callable[[], dict[str, Any]]:
    """Lumos, with what an earlier reading left, if any; it leaves that for the next."""
    from lumos.discovery.lake.table_folder import StoredTableFolder
    from lumos.formats.tables import table_reader
    from lumos.formats.tables.interface import FileEntry
    from lumos.storage import LocalStorage

    class Counted(StoredTableFolder):
        listed = opened = 0

        def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
            self.listed += 1
            return super().entries(folder, after=after)

        def read(self, path: str) -> bytes:
            self.opened += 1
            return super().read(path)

        def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
            self.opened += len(paths)
            return super().read_many(paths)

    reader = table_reader(kind)
    kept = Path(memory)

    def run() -> dict[str, Any]:
        folder = Counted(LocalStorage(), root)
        before = kept.read_bytes() if kept.exists() else None
        reader.signature(folder)
        facts, after = reader.read(folder, before, max_commits=ALL)
        kept.write_bytes(after)
        return {
            "found": [facts.version, facts.files, facts.bytes],
            "schemas": len(facts.past),
            "opened": folder.opened,
            "memory_file_bytes": len(after),
        }

    return run


def library(kind: str, root: str, memory: str) -> Callable[[], dict[str, Any]]:  # noqa: ARG001 - as above
    """The format's own library: the current version with its files."""
    return {"delta": _deltalake, "iceberg": _pyiceberg, "hudi": _hudi}[kind](root)


def _deltalake(root: str) -> Callable[[], dict[str, Any]]:
    from deltalake import DeltaTable

    def run() -> dict[str, Any]:
        table = DeltaTable(root)
        adds = table.get_add_actions(flatten=True)
        sizes = adds.column("size_bytes").to_pylist()
        table.history()
        table.schema()
        return {"found": [str(table.version()), len(sizes), sum(sizes)]}

    return run


def _pyiceberg(root: str) -> Callable[[], dict[str, Any]]:
    import pyiceberg.io.pyarrow  # noqa: F401 - it would be imported while the clock runs
    from pyiceberg.table import StaticTable

    def run() -> dict[str, Any]:
        newest = max(Path(root, "metadata").glob("*.metadata.json"))
        table = StaticTable.from_metadata(str(newest))
        sizes = [task.file.file_size_in_bytes for task in table.scan().plan_files()]
        snapshot = table.current_snapshot()
        version = str(snapshot.snapshot_id) if snapshot else ""
        return {"found": [version, len(sizes), sum(sizes)]}

    return run


def _hudi(root: str) -> Callable[[], dict[str, Any]]:
    from hudi import HudiTableBuilder

    def run() -> dict[str, Any]:
        table = HudiTableBuilder.from_base_uri(root).build()
        slices = table.get_file_slices()
        sizes = [Path(root, each.base_file_relative_path()).stat().st_size for each in slices]
        newest = table.get_timeline().get_latest_commit_timestamp()
        table.get_schema()
        return {"found": [newest, len(sizes), sum(sizes)]}

    return run


def main() -> None:
    who, *given = sys.argv[1:]
    run = {"lumos": lumos, "library": library}[who](*given)
    imported = _peak()
    started, used = time.perf_counter(), time.process_time()
    figures = run()
    figures["seconds"] = round(time.perf_counter() - started, 3)
    figures["cpu_seconds"] = round(time.process_time() - used, 3)
    figures["imported_megabytes"] = imported
    figures["peak_megabytes"] = _peak()
    sys.stdout.write(json.dumps(figures) + "\n")


def _peak() -> int:
    """Megabytes of this program at most; what `getrusage` tells begins with the parent's."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main()
