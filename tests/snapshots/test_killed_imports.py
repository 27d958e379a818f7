"""An import that is killed at any moment goes on to the same end, or leaves nothing behind."""

import json
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from lumos import Lumos
from lumos.model.catalog import CatalogEntry, GlossaryTerm, User
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.model.schema import Field, Schema
from lumos.model.types import STRING
from lumos.snapshots.format.writer import write_snapshot
from lumos.store import tables
from lumos.store.journal import ImportRun
from snapshots.sample_inventories import FACTS, many

_SCRIPT = Path(__file__).with_name("killed_import.py")
_POINTS = range(10)
PLATFORMS = ["local", "datahub-file:estate.json"]
# What must be the same in the end, however often the import was begun; times may differ.
_TABLES: dict[str, tuple[str, ...]] = {
    "dataset": ("urn", "name", "state", "cloud_version", "schema_version", "schema_hash"),
    "aspect": ("urn", "name", "body"),
    "schema_version": ("urn", "number", "version", "cloud_version", "schema_hash"),
    "annotation": ("urn", "digest", "reporter", "value"),
    "beside": ("urn", "name"),
    "search_entry": ("urn", "name", "path", "fields", "facets"),
    "item": ("kind", "key", "body"),
    "merge_base": ("platform", "kind", "key", "body"),
}


def make_entries(count: int, *, tag: str, wide: bool = False) -> Iterator[CatalogEntry]:
    extra = (Field(name="extra", type=STRING),) if wide else ()
    for entry in many(count):
        assert entry.schema is not None
        yield msgspec.structs.replace(
            entry,
            schema=Schema(fields=(*entry.schema.fields, *extra)),
            governance=Governance(tags=(tag,)),
            ownership=Ownership(owners=(Owner(name="ann"),)),
        )


@pytest.fixture
def prepared() -> Callable[[dict[str, object], str], Lumos]:
    """Makes a catalog that was imported into once and edited since, and the next snapshot."""

    def prepare(stored: dict[str, object], platform: str) -> Lumos:
        lumos = Lumos(overrides=stored)
        terms = [GlossaryTerm(name=name, definition="first") for name in "abc"]
        write_snapshot("first.jsonl", FACTS, make_entries(14, tag="one"), glossary=terms)
        lumos.snapshot.load("first.jsonl", platform=platform)
        words = Documentation(description="of a person")
        by_hand = [
            msgspec.structs.replace(entry, governance=None, ownership=None, documentation=words)
            for entry in make_entries(14, tag="one")
        ]
        write_snapshot("by_hand.jsonl", FACTS, by_hand[::3], glossary=terms[:1])
        lumos.snapshot.load("by_hand.jsonl", platform=platform, allow_dangling=True)
        terms = [GlossaryTerm(name=name, definition="second") for name in "bcdef"]
        write_snapshot(
            "second.jsonl",
            FACTS,
            make_entries(22, tag="two", wide=True),
            glossary=terms,
            users=[User(name="ann")],
        )
        return lumos

    return prepare


def act(name: str, platform: str, stored: dict[str, object], *, point: int = 0) -> range | None:
    """Runs an act in a process; gives the moments it had, or nothing where it was killed."""
    words = [sys.executable, _SCRIPT, name, "second.jsonl", platform, point, json.dumps(stored)]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr
    return range(*map(int, done.stdout.split()))


def state(lumos: Lumos, platform: str) -> dict[str, Any]:
    """All that a catalog and the store hold."""
    lumos.snapshot.export("state.jsonl", platform=platform)
    found: dict[str, Any] = {"snapshot": Path("state.jsonl").read_text().splitlines()[1:]}
    with lumos.database.reading() as connection:
        for name, columns in _TABLES.items():
            table = tables.metadata.tables[name]
            rows = connection.execute(select(*(table.c[column] for column in columns)))
            found[name] = sorted(map(tuple, rows))
        if platform == "local":
            event = tables.change_event.c
            rows = connection.execute(select(event.urn, event.type).where(event.urn != ""))
            found["events"] = sorted(map(tuple, rows))
    return found


def killed_and(
    finish: str,
    prepare: Callable[[dict[str, object], str], Lumos],
    stored: dict[str, object],
    platform: str,
    *,
    seed: int,
) -> None:
    """Kills an import at a random moment, and its continuation once as well."""
    lumos = prepare(stored, platform)
    before = state(lumos, platform)
    chance = random.Random(f"{platform} {finish} {seed}")
    assert act("import", platform, stored, point=chance.choice(_moments[platform])) is None
    if not _is_begun(lumos, platform):
        assert state(lumos, platform) == before
        return
    # What follows may be killed too, or be over before its moment comes.
    act(finish, platform, stored, point=chance.choice(_moments[platform]))
    _finish(lumos, finish, platform)
    after = state(lumos, platform)
    if finish == "rollback":
        # That something was begun and taken back is told; nothing else is left of it.
        assert {**after, "events": None} == {**before, "events": None}
        return
    lumos.snapshot.roll_back(platform=platform)
    assert {**state(lumos, platform), "events": None} == {**before, "events": None}
    lumos.snapshot.load("second.jsonl", platform=platform)
    undisturbed = state(lumos, platform)
    assert _timeless(after["snapshot"]) == _timeless(undisturbed["snapshot"])
    for name in ("aspect", "schema_version", "item", "search_entry"):
        assert after[name] == undisturbed[name]


def _timeless(lines: list[str]) -> list[str]:
    """Entries without the time of their versions, which is that of their import."""
    return [re.sub(r'"(at|created|content_hash)":"[^"]*"', "", line) for line in lines]


def _run(lumos: Lumos, platform: str) -> ImportRun:
    run = lumos._store.open().journal.open_run(lumos.snapshot._catalogs.named(platform).name)
    assert run is not None, "the first import can still be taken back"
    return run


def _is_begun(lumos: Lumos, platform: str) -> bool:
    return _run(lumos, platform).file.endswith("second.jsonl")


def _finish(lumos: Lumos, finish: str, platform: str) -> None:
    if finish == "rollback":
        if _is_begun(lumos, platform):
            lumos.snapshot.roll_back(platform=platform)
    elif _run(lumos, platform).state == "running":
        lumos.snapshot.load("second.jsonl", platform=platform, resume=True)


# Of an undisturbed import into each catalog, from when its journal is begun.
_moments: dict[str, range] = {}


@pytest.fixture(params=PLATFORMS)
def platform(
    request: pytest.FixtureRequest,
    prepared: Callable[[dict[str, object], str], Lumos],
    workplace: Path,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Each catalog, once it is known how long an undisturbed import into it takes."""
    name = str(request.param)
    if name not in _moments:
        with monkeypatch.context() as patched:
            folder = tmp_path_factory.mktemp("undisturbed")
            patched.chdir(folder)
            stored: dict[str, object] = {"storage.path": str(folder / "lumos.db")}
            prepared(stored, name)
            moments = act("import", name, stored)
            assert moments is not None
            _moments[name] = moments
    return name


@pytest.mark.slow
@pytest.mark.parametrize("finish", ["resume", "rollback"])
def test_a_killed_import_goes_on_or_is_taken_back(
    prepared: Callable[[dict[str, object], str], Lumos], platform: str, finish: str, workplace: Path
) -> None:
    stored: dict[str, object] = {"storage.path": str(workplace / "lumos.db")}
    killed_and(finish, prepared, stored, platform, seed=-1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", _POINTS)
@pytest.mark.parametrize("finish", ["resume", "rollback"])
def test_at_any_moment_a_killed_import_goes_on_or_is_taken_back(
    prepared: Callable[[dict[str, object], str], Lumos],
    platform: str,
    stored: dict[str, object],
    finish: str,
    seed: int,
) -> None:
    killed_and(finish, prepared, stored, platform, seed=seed)
