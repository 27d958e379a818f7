"""Imports into servers that fail, and by processes that are killed; the servers are stubs."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from lumos import Lumos
from lumos.catalogs import http as calling
from lumos.model.catalog import CatalogEntry, GlossaryTerm
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.snapshots.format.writer import write_snapshot
from snapshots.sample_inventories import FACTS

from .live import RIGS, Rig
from .servers.faults import Faults
from .servers.http import Answer, Request, Server

SOME, FEW, MANY = 60, 500, 5_000
FIGURES = Path(__file__).parents[2] / "build" / "airtight"


class Run(NamedTuple):
    """What an import took, and what the server then holds."""

    calls: int
    mishaps: int
    lost_answers: int
    state: Any
    datasets: int
    written: int


@pytest.fixture(params=RIGS)
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Rig:
    made: Rig = RIGS[request.param]()
    monkeypatch.setenv(made.variable, made.token)
    return made


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    short = msgspec.structs.replace(calling.CATALOG_RETRIES, first_wait=0.005, max_wait=0.1)
    monkeypatch.setattr(calling, "CATALOG_RETRIES", short)


def estate(size: int, *, tag: str = "one") -> Iterator[CatalogEntry]:
    for number in range(size):
        yield CatalogEntry(
            urn=urn(number),
            name=f"t{number}",
            platform="s3",
            schema=Schema(
                fields=(
                    Field(name="id", type=INT64, nullable=False, description="What it is"),
                    Field(name=f"c{number % 7}", type=STRING, tags=("pii",)),
                )
            ),
            lineage=Lineage(upstream=(UpstreamEdge(urn=urn(number // 2)),)) if number else None,
            ownership=Ownership(owners=(Owner(name=f"team{number % 5}", kind="group"),)),
            governance=Governance(tags=(tag, f"domain-{number % 5}")),
            documentation=Documentation(description=f"All of {number}"),
            properties={"number": str(number)},
        )


def urn(number: int) -> str:
    return f"lumos://s3/lake/raw/t{number:05}"


def imported(folder: Path, rig: Rig, snapshot: Path, faults: Faults | None) -> Run:
    stub = rig.made()
    with Server(stub, mishaps=faults) as server:
        stored = {"storage.path": str(folder / "lumos.db"), **rig.settings(server.address)}
        report = Lumos(overrides=stored).snapshot.load(snapshot, platform=rig.kind)
        assert not report.refused
        met = [mishap for _, mishap in server.met]
        return Run(
            calls=server.calls,
            mishaps=len(met),
            lost_answers=sum(mishap.takes_effect for mishap in met),
            state=rig.state(stub),
            datasets=rig.datasets(stub),
            written=rig.writes(server),
        )


def note(rig: Rig, size: int, **calls: int) -> None:
    """Keeps the figures where people find them."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"datasets": size, **calls})
    (FIGURES / f"{rig.kind}-{size}.json").write_text(text + "\n", encoding="utf-8")


def airtight(tmp_path: Path, rig: Rig, size: int) -> None:
    snapshot = tmp_path / "estate.jsonl"
    write_snapshot(snapshot, FACTS, estate(size), glossary=[GlossaryTerm(name="Order")])
    runs = {}
    for name, faults in (
        ("calm", None),
        ("stormy", Faults(seed=size, share=0.3, kinds=rig.mishaps)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        runs[name] = imported(folder, rig, snapshot, faults)
    calm, stormy = runs["calm"], runs["stormy"]
    note(rig, size, calm=calm.calls, stormy=stormy.calls, mishaps=stormy.mishaps)
    assert calm.datasets == stormy.datasets == size
    assert stormy.state == calm.state
    assert stormy.mishaps > 0.2 * stormy.calls
    assert stormy.calls <= 2 * calm.calls
    # Nothing is written more often than somebody had to ask again whether it was.
    assert stormy.written <= calm.written + stormy.lost_answers


@pytest.mark.slow
def test_all_arrives_once_where_a_third_of_the_calls_fail(tmp_path: Path, rig: Rig) -> None:
    airtight(tmp_path, rig, rig.few)


@pytest.mark.slow
@pytest.mark.parametrize("size", [FEW, MANY])
def test_many_arrive_once_where_a_third_of_the_calls_fail(
    tmp_path: Path, rig: Rig, size: int
) -> None:
    airtight(tmp_path, rig, size)


class Workplace:
    """A catalog that was imported into once and edited since, and the next snapshot."""

    def __init__(self, folder: Path, rig: Rig, size: int) -> None:
        self.folder = folder
        self.rig = rig
        self.stub = rig.made()
        self.server = Server(self.stub)
        self.store = folder / "lumos.db"
        self._numbers = count()
        self.first, self.second = folder / "first.jsonl", folder / "second.jsonl"
        terms = [GlossaryTerm(name=name, definition="first") for name in "abc"]
        write_snapshot(self.first, FACTS, estate(size // 2), glossary=terms)
        terms = [GlossaryTerm(name=name, definition="second") for name in "bcd"]
        write_snapshot(self.second, FACTS, estate(size, tag="two"), glossary=terms)

    @property
    def platform(self) -> str:
        return f"{self.rig.kind}:{self.server.address}"

    @property
    def lumos(self) -> Lumos:
        return Lumos(overrides={"storage.path": str(self.store)})

    def exported(self) -> list[str]:
        """Every entry as a line, as one who comes anew reads it."""
        file = self.folder / "state.jsonl"
        self.lumos.snapshot.export(file, platform=self.platform)
        return file.read_text(encoding="utf-8").splitlines()[1:]

    def saved(self) -> tuple[Path, Any]:
        """What the store and the server hold, apart from what becomes of them."""
        return self._copied(self.store), self.rig.saved(self.stub)

    def restore(self, saved: tuple[Path, Any]) -> None:
        self.store = self._copied(saved[0])
        self.rig.restore(self.stub, saved[1])

    def _copied(self, store: Path) -> Path:
        copy = self.folder / f"lumos-{next(self._numbers)}.db"
        with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return copy

    def killed_at(self, number: int, *, before: bool) -> bool:
        """Imports in another process, which is killed at one of its calls."""
        words = ["import", "--input", str(self.second), "--platform", self.platform]
        child = subprocess.Popen(
            [sys.executable, "-m", "lumos", *words, "--store", str(self.store)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder)},
        )
        self.server.forget()

        def kill(request: Request, _: Answer | None = None) -> None:
            if request.number == number:
                child.send_signal(signal.SIGKILL)
                child.wait()

        hooks: list[Any] = self.server.before if before else self.server.after
        hooks.append(kill)
        _, told = child.communicate()
        hooks.remove(kill)
        assert child.returncode in (0, -signal.SIGKILL), told
        return child.returncode == -signal.SIGKILL


@pytest.fixture
def prepared(tmp_path: Path, rig: Rig) -> Iterator[Callable[[int], Workplace]]:
    with ExitStack() as stack:

        def prepared(size: int) -> Workplace:
            place = Workplace(tmp_path, rig, size)
            stack.enter_context(place.server)
            place.lumos.snapshot.load(place.first, platform=place.platform)
            rig.edit(place.stub, "t00003", "By hand")
            return place

        yield prepared


def holds_when_killed(place: Workplace, chance: random.Random) -> None:
    before = place.exported()
    begun = place.saved()
    place.server.forget()
    place.lumos.snapshot.load(place.second, platform=place.platform)
    calls = place.server.calls
    undisturbed = place.exported()
    place.restore(begun)
    assert place.killed_at(chance.randint(2, calls), before=chance.random() < 0.5)
    killed = place.saved()
    if is_begun(place):
        place.lumos.snapshot.load(place.second, platform=place.platform, resume=True)
    else:
        place.lumos.snapshot.load(place.second, platform=place.platform)
    assert place.exported() == undisturbed
    place.restore(killed)
    # People go on to work in the meantime.
    place.rig.edit(place.stub, "t00001", "In the meantime")
    if is_begun(place):
        place.lumos.snapshot.roll_back(platform=place.platform)
    assert described(place.exported()) == {**described(before), urn(1): "In the meantime"}
    assert places(place.exported()) == places(before)


def is_begun(place: Workplace) -> bool:
    lumos = place.lumos
    run = lumos._store.open().journal.open_run(lumos.snapshot._catalogs.named(place.platform).name)
    return run is not None and run.file.endswith("second.jsonl")


def described(lines: list[str]) -> dict[str, str]:
    entries = [entry for line in lines if (entry := json.loads(line).get("dataset"))]
    return {entry["urn"]: entry["documentation"]["description"] for entry in entries}


def places(lines: list[str]) -> list[str]:
    """Entries without what was edited in the meantime."""
    return [line for line in lines if urn(1) not in line[:200]]


@pytest.mark.slow
def test_an_import_that_is_killed_goes_on_or_is_taken_back(
    prepared: Callable[[int], Workplace],
) -> None:
    holds_when_killed(prepared(SOME), random.Random(1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_an_import_that_is_killed_anywhere_goes_on_or_is_taken_back(
    prepared: Callable[[int], Workplace], seed: int
) -> None:
    holds_when_killed(prepared(FEW), random.Random(seed + 100))


@pytest.mark.slow
def test_an_import_of_5000_that_is_killed_goes_on_or_is_taken_back(
    prepared: Callable[[int], Workplace],
) -> None:
    holds_when_killed(prepared(MANY), random.Random(1))
