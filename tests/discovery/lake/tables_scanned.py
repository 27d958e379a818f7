"""Scans of lakes with tables, by the code of tasks and driver, in this process and without Spark."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lumos.discovery.lake import job as discovery
from lumos.discovery.lake.manifest import ManifestStore, ScanManifest
from lumos.model.discovery import Discovery, FoundDataset
from lumos.spark.tasks import Task, task_table
from lumos.storage import DEFAULT_ACCESS, FileSelection, StorageAccess


class Scans:
    """A lake that is scanned again and again; each scan goes on from the last one."""

    def __init__(
        self,
        root: str,
        state: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        access: StorageAccess = DEFAULT_ACCESS,
    ) -> None:
        self.selection = FileSelection(root, access=access)
        self.state = str(state)
        self.number = 0
        self.last: Discovery | None = None
        # Called before each job of a scan with its number: what is loose, tables, and so on.
        self.jobs = 0
        self.between: Callable[[int], None] = lambda _job: None

        def run_tasks(
            _spark: object, schema: pa.Schema, rows: list[Any], do: Task, _: str, **_tasks: int
        ) -> list[bytes]:
            if not rows:
                return []
            self.jobs += 1
            self.between(self.jobs)
            batches = task_table(schema, rows).to_batches(max_chunksize=1)
            return [each for batch in do(batches) for each in batch.columns[-1].to_pylist()]

        monkeypatch.setattr(discovery, "run_tasks", run_tasks)
        monkeypatch.setattr(discovery, "task_count", lambda _spark: 8)

    @property
    def manifest(self) -> ScanManifest:
        return ManifestStore(self.state).read(f"{self.number}")

    def scan(self, *, changed: list[str] | None = None, **narrowed: Any) -> Discovery:
        self.selection = self.selection._replace(**narrowed)
        self.jobs = 0
        self.last = discovery.scan_lake(
            SimpleNamespace(),  # type: ignore[arg-type]
            self.selection,
            state=self.state,
            before=f"{self.number}" if self.number else None,
            after=f"{self.number + 1}",
            changed=changed,
        )
        self.number += 1
        ManifestStore(self.state).delete_all_but({f"{self.number}"})
        return self.last

    def found(self, **narrowed: Any) -> dict[str, str]:
        """The formats of what a scan finds, by path below the root."""
        datasets = self.scan(**narrowed).datasets
        return {self.inside(each.path): each.format for each in datasets}

    def dataset(self, path: str) -> FoundDataset:
        assert self.last is not None
        (found,) = (each for each in self.last.datasets if self.inside(each.path) == path)
        return found

    @property
    def problems(self) -> set[tuple[str, str]]:
        assert self.last is not None
        return {(self.inside(each.path), each.code) for each in self.last.problems}

    def inside(self, path: str) -> str:
        return path.removeprefix(self.selection.root).strip("/")
