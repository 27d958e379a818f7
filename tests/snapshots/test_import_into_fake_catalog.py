"""Imports into a catalog that takes many entries at once, but not all or nothing.

The catalog is a fake in memory; what real ones do with the same calls is told by their own tests.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from examples import examples
from lumos import Lumos, plugins
from lumos.catalogs import (
    CatalogItem,
    Connects,
    FailedEntry,
    MergesWrites,
    Platform,
    StoresItems,
    WrittenEntry,
)
from lumos.catalogs.interface import WritesMany
from lumos.cli.main import app
from lumos.errors import CatalogBusy, CatalogError, LumosError
from lumos.model.catalog import CatalogEntry, GlossaryTerm, User
from lumos.model.dataset import ASPECTS, Dataset, Documentation, Governance
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.importer import ImportStopped
from snapshots.sample_inventories import FACTS, many


class Fake(Platform, WritesMany, MergesWrites, StoresItems, Connects):
    """A server's memory, and what is wrong with the server today."""

    kind: ClassVar[str] = "fake"
    native: ClassVar[frozenset[str]] = frozenset(ASPECTS)
    batch_size: ClassVar[int] = 40

    entries: ClassVar[dict[str, CatalogEntry]] = {}
    terms: ClassVar[dict[tuple[type, str], CatalogItem]] = {}
    calls: ClassVar[list[str]] = []
    # Fails once so many entries were written.
    breaks_after: ClassVar[int | None] = None
    bad: ClassVar[set[str]] = set()
    # Fails at each of these counts of writes, with the write done but the answer lost.
    loses: ClassVar[set[int]] = set()
    writes: ClassVar[int] = 0

    def __init__(self, settings: Any) -> None:
        pass

    def check(self) -> str:
        self.calls.append("check")
        return "fake"

    def close(self) -> None:
        pass

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        self.calls.append(f"get {len(urns)}")
        return {urn: self.entries[urn] for urn in urns if urn in self.entries}

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        for urn in sorted(self.entries):
            if after is None or urn > after:
                yield self.entries[urn]

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        assert {urn: self.entries.get(urn) for urn in current} == dict(current)
        for start in range(0, len(entries), 10):
            self.calls.append(f"put {len(entries[start : start + 10])}")
            for entry in entries[start : start + 10]:
                if entry.name in self.bad:
                    problem = CatalogError("no such thing", platform="fake", status=400)
                    yield FailedEntry(entry.urn, problem)
                    continue
                if self.breaks_after is not None and len(self.entries) >= self.breaks_after:
                    raise CatalogBusy("fake", "it", attempts=8, seconds=9, last="503")
                self.entries[entry.urn] = entry
                self._lose_answer()
                yield WrittenEntry(urn=entry.urn, changed=True, held={"schema": "native"})

    def _lose_answer(self) -> None:
        Fake.writes += 1
        if self.writes in self.loses:
            raise CatalogBusy("fake", "it", attempts=8, seconds=9, last="reset")

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        if "unspeakable" in entry.name:
            raise LumosError("There is no name for it.")
        return entry

    def erase(self, urn: str) -> None:
        self.calls.append("erase")
        self.entries.pop(urn, None)
        self._lose_answer()

    def items(self) -> Iterator[CatalogItem]:
        return iter(list(self.terms.values()))

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self.terms.get((type, key))

    def put_item(self, item: Any) -> None:
        if item.name in self.bad:
            raise CatalogError("no such word", platform="fake", status=422)
        self.calls.append(f"put {item.name}")
        self.terms[type(item), item.name] = item

    def erase_item(self, item: Any) -> None:
        del self.terms[type(item), item.name]


@pytest.fixture(autouse=True)
def fake() -> Iterator[type[Fake]]:
    plugins.register(plugins.PLATFORMS, "fake", Fake)
    Fake.entries, Fake.terms, Fake.calls = {}, {}, []
    Fake.breaks_after, Fake.bad = None, set()
    Fake.loses, Fake.writes = set(), 0
    yield Fake
    plugins.unregister(plugins.PLATFORMS, "fake")


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    return Lumos(overrides={"storage.path": str(workplace / "lumos.db")})


def make_entries(count: int, *, tag: str = "one") -> list[CatalogEntry]:
    return [
        msgspec.structs.replace(entry, governance=Governance(tags=(tag,))) for entry in many(count)
    ]


def snapshot(*entries: CatalogEntry, file: str = "snapshot.jsonl", **items: Any) -> str:
    write_snapshot(file, FACTS, entries, **items)
    return file


def load(lumos: Lumos, file: str, **options: Any) -> Any:
    return lumos.snapshot.load(file, platform="fake", allow_dangling=True, **options)


def test_many_entries_are_read_and_written_by_few_calls_of_a_fake(
    lumos: Lumos, fake: type[Fake]
) -> None:
    entries = make_entries(100)
    terms = [GlossaryTerm(name=name) for name in "abc"]
    report = load(lumos, snapshot(*entries, glossary=terms, users=[User(name="ann")]))
    assert report.sums.tally("datasets").created == 100
    assert report.sums.tally("glossary").created == 3
    assert report.sums.held == {"schema": {"native": 100}}
    assert [fake.entries[entry.urn] for entry in entries] == entries
    # What datasets refer to comes before them.
    assert fake.calls == ["check", "put a", "put b", "put c", "put ann",
                          "get 40", *["put 10"] * 4, "get 40", *["put 10"] * 4,
                          "get 20", *["put 10"] * 2]  # fmt: skip
    fake.calls.clear()
    again = load(lumos, "snapshot.jsonl")
    assert again.sums.tally("datasets").unchanged == 100
    assert fake.calls == ["check", "get 40", "get 40", "get 20"]


def test_what_a_fake_refuses_is_named_and_the_others_go_on(lumos: Lumos, fake: type[Fake]) -> None:
    entries = [
        *make_entries(50),
        CatalogEntry(urn="lumos://s3/u", name="unspeakable", platform="s3"),
        CatalogEntry(urn="lumos://s3/z", name="z", platform="s3"),
    ]
    fake.bad |= {entries[3].name, entries[47].name, "b"}
    file = snapshot(*entries, glossary=[GlossaryTerm(name=name) for name in "abc"])
    report = load(lumos, file)
    assert report.sums.tally("datasets").created == 49
    assert report.sums.tally("glossary").created == 2
    assert report.sums.refused == 4
    assert [(each.kind, each.key, each.problem) for each in report.refused] == [
        ("term", "b", "no such word"),
        ("dataset", entries[3].urn, "no such thing"),
        ("dataset", entries[47].urn, "no such thing"),
        ("dataset", "lumos://s3/u", "There is no name for it."),
    ]
    assert len(fake.entries) == 49
    # Once somebody mended them, the next import brings them along.
    fake.bad.clear()
    again = load(lumos, file)
    tally = again.sums.tally("datasets")
    assert (tally.created, tally.unchanged, again.sums.refused) == (2, 49, 1)
    assert lumos.snapshot.roll_back(platform="fake").erased == 3
    assert len(fake.entries) == 49


def test_a_trial_names_what_a_fake_could_not_take(lumos: Lumos, fake: type[Fake]) -> None:
    file = snapshot(
        CatalogEntry(urn="lumos://s3/u", name="unspeakable", platform="s3"), *make_entries(2)
    )
    report = lumos.snapshot.try_load(file, platform="fake", allow_dangling=True)
    assert [each.key for each in report.refused] == ["lumos://s3/u"]
    assert report.sums.tally("datasets").created == 2
    assert fake.entries == {}


@pytest.mark.usefixtures("workplace")
def test_the_command_ends_with_an_error_where_a_fake_refused_something(fake: type[Fake]) -> None:
    fake.bad.add("z")
    file = snapshot(CatalogEntry(urn="lumos://s3/z", name="z", platform="s3"),
                    CatalogEntry(urn="lumos://s3/y", name="y", platform="s3"))  # fmt: skip
    words = ["import", "--input", file, "--platform", "fake"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "problem  dataset z was refused: no such thing" in result.output
    assert "[ok]" not in result.output
    result = CliRunner().invoke(app, [*words, "--json"])
    assert (result.exit_code, json.loads(result.stdout)["sums"]["refused"]) == (1, 1)
    fake.bad.clear()
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize("broken_after", [0, 9, 40, 77])
@pytest.mark.parametrize("finish", ["resume", "rollback"])
def test_an_import_into_a_fake_that_fails_goes_on_or_is_taken_back(
    lumos: Lumos, fake: type[Fake], broken_after: int, finish: str
) -> None:
    file = snapshot(*make_entries(100), glossary=[GlossaryTerm(name="a")])
    fake.breaks_after = broken_after
    with pytest.raises(ImportStopped, match=r"was tried 8 times .*--resume.*--rollback"):
        load(lumos, file)
    assert len(fake.entries) == broken_after
    fake.breaks_after = None
    fake.calls.clear()
    if finish == "rollback":
        report = lumos.snapshot.roll_back(platform="fake")
        assert (report.erased, report.restored) == (broken_after + 1, 0)
        assert (fake.entries, fake.terms) == ({}, {})
        return
    report = load(lumos, file, resume=True)
    assert report.sums.tally("datasets").created == 100
    assert report.sums.held == {"schema": {"native": 100}}
    assert len(fake.entries) == 100
    # What was on record as done is neither read nor written again.
    read, written = (
        sum(int(call.split()[1]) for call in fake.calls if call.startswith(verb))
        for verb in ("get", "put")
    )
    assert read == written == 100 - broken_after


def test_a_fake_whose_answers_are_lost_is_known_by_what_was_planned(
    lumos: Lumos, fake: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_many = fake.put_many

    def lost(
        self: Fake, entries: Sequence[CatalogEntry], **over: Any
    ) -> Iterator[WrittenEntry | FailedEntry]:
        results = list(put_many(self, entries, **over))
        yield from results[:3]
        raise CatalogBusy("fake", "it", attempts=8, seconds=9, last="reset")

    file = snapshot(*make_entries(20))
    with monkeypatch.context() as patched:
        patched.setattr(fake, "put_many", lost)
        with pytest.raises(ImportStopped):
            load(lumos, file)
    assert len(fake.entries) == 20
    fake.calls.clear()
    report = load(lumos, file, resume=True)
    assert report.sums.tally("datasets").created == 20
    # What reads as written may lack what a catalog writes last.
    assert fake.calls == ["check", "get 17", "put 10", "put 7"]
    assert lumos.snapshot.roll_back(platform="fake").erased == 20


def test_refusals_of_a_fake_are_not_forgotten_when_an_import_is_broken_off(
    lumos: Lumos, fake: type[Fake]
) -> None:
    entries = make_entries(100)
    fake.bad.add(entries[0].name)
    fake.breaks_after = 70
    with pytest.raises(ImportStopped):
        load(lumos, snapshot(*entries))
    fake.breaks_after = None
    report = load(lumos, "snapshot.jsonl", resume=True)
    assert [each.key for each in report.refused] == [entries[0].urn]
    assert report.sums.tally("datasets").created == 99


def edit(fake: type[Fake], urn: str, change: Callable[[CatalogEntry], CatalogEntry]) -> None:
    fake.entries[urn] = change(fake.entries[urn])


def test_taking_an_import_into_a_fake_back_keeps_edits_and_restores_the_rest(
    lumos: Lumos, fake: type[Fake]
) -> None:
    first = make_entries(30)
    load(lumos, snapshot(*first))
    before = dict(fake.entries)
    load(lumos, snapshot(*make_entries(45, tag="two"), file="second.jsonl"))
    words = Documentation(description="of a person")
    edited = first[4].urn
    edit(fake, edited, lambda entry: msgspec.structs.replace(entry, documentation=words))
    fake.calls.clear()
    report = lumos.snapshot.roll_back(platform="fake")
    assert (report.restored, report.erased) == (30, 15)
    expected = msgspec.structs.replace(before[edited], documentation=words)
    assert fake.entries == {**before, edited: expected}
    assert sum(call.startswith("put") for call in fake.calls) == 3


def test_what_a_fake_refuses_to_restore_is_reported_and_tried_again(
    lumos: Lumos, fake: type[Fake]
) -> None:
    first = make_entries(5)
    load(lumos, snapshot(*first))
    before = dict(fake.entries)
    load(lumos, snapshot(*make_entries(5, tag="two"), file="second.jsonl"))
    fake.bad.add(first[2].name)
    with pytest.raises(LumosError, match=f"{first[2].urn} was refused: no such thing"):
        lumos.snapshot.roll_back(platform="fake")
    assert sum(fake.entries[urn] == entry for urn, entry in before.items()) == 4
    fake.bad.clear()
    assert lumos.snapshot.roll_back(platform="fake").restored == 1
    assert fake.entries == before


@pytest.mark.slow
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    loses=st.sets(st.integers(1, 90), max_size=6),
    finish=st.sampled_from(["resume", "rollback"]),
    edited=st.sets(st.integers(0, 29), max_size=4),
)
def test_however_often_a_fake_fails_an_import_ends_whole_or_was_never_there(
    workplace: Path, fake: type[Fake], loses: set[int], finish: str, edited: set[int]
) -> None:
    (workplace / "lumos.db").unlink(missing_ok=True)
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    fake.entries, fake.writes, fake.loses = {}, 0, set()
    first = make_entries(30)
    load(lumos, snapshot(*first))
    before = dict(fake.entries)
    file = snapshot(*make_entries(60, tag="two"), file="second.jsonl")
    fake.writes, fake.loses = 0, loses
    steps = [lambda: load(lumos, file, resume=True)]
    if finish == "rollback":
        steps.append(lambda: lumos.snapshot.roll_back(platform="fake"))
    words = Documentation(description="of a person")
    for number, step in enumerate(steps):
        while True:
            try:
                step()
            except ImportStopped:
                continue
            break
        if number == 0:
            for index in edited:
                edit(fake, first[index].urn, lambda entry: _described(entry, words))
    expected = (
        before if finish == "rollback" else {each.urn: each for each in make_entries(60, tag="two")}
    )
    theirs = {first[index].urn: _described(expected[first[index].urn], words) for index in edited}
    assert fake.entries == expected | theirs


def _described(entry: CatalogEntry, words: Documentation) -> CatalogEntry:
    return msgspec.structs.replace(entry, documentation=words)
