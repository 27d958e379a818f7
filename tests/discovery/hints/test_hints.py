"""Hints are added, listed and removed, and what they change is known before the next scan."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from files import write_text
from lumos import Lumos
from lumos.discovery.hints.service import HintChangeReport
from lumos.errors import MisuseError
from lumos.profiles.files import ScannedDatasets
from lumos.store import Store, tables

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    for app in ("web", "pos", "app"):
        for day in ("2024-01-01", "2024-01-02"):
            write_text(lake / f"raw/{app}_log/dt={day}/x.csv", [f"id,{app}_x", "1,2"])
    for number in range(3):
        write_text(lake / f"exports/table{number}.csv", ["id,name", "1,2"])
    write_text(lake / "ref/customers_v7/a.csv", ["customer,city", "1,2"])
    return lake


@pytest.fixture
def scanned(lake: Path, spark: object) -> Path:  # noqa: ARG001 - scans find the session by themselves
    Lumos().ingest(lake)
    return lake


def configure(*lines: str) -> Path:
    write_text(Path("lumos.yaml"), lines or ["sources:", "  - {type: file, path: lake}"])
    return Path("lumos.yaml")


def datasets(lumos: Lumos) -> dict[str, int]:
    """Files of each dataset that the store holds."""
    return {
        each.urn: lumos.show(each.urn).dataset["statistics"]["file_count"]
        for each in lumos.list().datasets
    }


def after(report: HintChangeReport) -> dict[str, int]:
    return {each.urn: each.files for effect in report.effects for each in effect.after}


def before(report: HintChangeReport) -> dict[str, int]:
    return {each.urn: each.files for effect in report.effects for each in effect.before}


def test_the_effect_that_is_shown_is_that_of_the_next_scan(scanned: Path) -> None:
    configure()
    lumos = Lumos()
    urn = f"lumos://file{scanned}"
    found = datasets(lumos)
    joined = lumos.hints.add(f"{scanned}/raw/*_log/**", name="logs")
    split = lumos.hints.add(str(scanned / "exports/*.csv"), split=True, in_store=True)
    named = lumos.hints.add("lake/ref/customers_v7", name="customers")
    assert [effect.kind for report in (joined, split, named) for effect in report.effects] == [
        "joined", "split", "renamed",
    ]  # fmt: skip
    assert before(joined) | before(split) | before(named) == found
    assert after(joined) == {f"{urn}/raw/logs": 6}
    assert after(named) == {f"{urn}/ref/customers": 1}
    assert joined.hint.files == 6
    assert (joined.next_command, joined.warnings) == ("lumos ingest", ())
    lumos.ingest()
    shown = after(joined) | after(split) | after(named)
    assert shown.items() <= datasets(lumos).items()
    assert {each.rule for each in Lumos().explain(scanned / "exports").datasets} == {"hint"}


def test_a_dry_run_writes_nothing(scanned: Path) -> None:
    file = configure()
    text = file.read_bytes()
    shown = Lumos().hints.add("lake/raw/*_log", name="logs", dry_run=True)
    assert (shown.dry_run, shown.change, shown.hint.number) == (True, "added", 0)
    assert (shown.hint.line, shown.hint.section) == (2, "sources[0].datasets")
    assert len(shown.effects) == 1
    stored = Lumos().hints.preview("lake/raw/*_log", name="logs", in_store=True)
    assert (stored.hint.kept_in, stored.effects) == ("store", shown.effects)
    assert file.read_bytes() == text
    assert Lumos().hints.list().hints == ()
    assert sorted(os.listdir()) == [".lumos", "lake", "lumos.yaml"]
    assert scanned.exists()


def test_a_hint_of_the_store_decides_in_every_verb(scanned: Path) -> None:
    lumos = Lumos()
    added = lumos.hints.add("lake/raw/*_log/**", name="logs")
    assert (added.hint.kept_in, added.next_command) == ("store", f"lumos ingest {scanned}")
    urn = f"lumos://file{scanned}/raw/logs"
    # Explained by what the next scan will make of it.
    (explained,) = lumos.explain(scanned / "raw").datasets
    assert (explained.urn, explained.files) == (urn, 6)
    assert urn in {each.urn for each in lumos.discover(scanned).datasets}
    configure()
    Lumos().watch(once=True)
    assert urn in datasets(lumos)
    recorded = ScannedDatasets(lumos.settings, Store.open(lumos.database), state=lumos.state_uri)
    located = recorded.locate(urn)
    assert len(list(located.files)) == 6


def test_removing_a_hint_shows_what_the_next_scan_makes_of_it(scanned: Path) -> None:
    lumos = Lumos()
    lumos.hints.add("lake/exports/*.csv", split=True)
    lumos.ingest(scanned)
    trial = lumos.hints.remove(1, dry_run=True)
    removed = lumos.hints.remove("lake/exports/*.csv")
    assert trial.effects == removed.effects
    assert lumos.hints.list().hints == ()
    lumos.ingest(scanned)
    assert after(removed).items() <= datasets(lumos).items()
    with lumos.database.reading() as connection:
        actions = connection.execute(select(tables.audit.c.action, tables.audit.c.target)).all()
    kept = [tuple(row) for row in actions if row.action.startswith("hint")]
    pattern = str(scanned / "exports/*.csv")
    assert kept == [("hint add", pattern), ("hint remove", pattern)]


def test_without_their_hint_files_are_grouped_by_their_paths_again(scanned: Path) -> None:
    lumos = Lumos()
    added = lumos.hints.add("lake/raw/*_log/**", name="logs")
    lumos.ingest(scanned)
    removed = lumos.hints.remove(1)
    assert [effect.kind for effect in removed.effects] == ["split"]
    assert (before(removed), after(removed)) == (after(added), before(added))


def test_warnings_say_why_a_hint_has_no_effect(scanned: Path) -> None:
    lumos = Lumos()
    unmatched = lumos.hints.add(str(scanned / "nothing/**"))
    assert unmatched.warnings == ("No file of the last scan matches the hint.",)
    lumos.hints.add("lake/raw/**", name="everything")
    shadowed = lumos.hints.add("lake/raw/web_log/**", name="web")
    assert shadowed.effects == ()
    assert "An earlier hint applies to 2 of the 2 matching files" in shadowed.warnings[0]
    assert [each.files for each in lumos.hints.list().hints] == [0, 6, 2]


def test_a_hint_of_a_source_comes_before_one_for_all_scans(scanned: Path) -> None:
    configure("sources: [{type: file, path: lake}]", "scan: {datasets: [raw]}")
    report = Lumos().hints.add("lake/raw/web_log", name="web")
    assert (report.warnings, report.hint.number, report.hint.files) == ((), 1, 2)
    assert after(report)[f"lumos://file{scanned}/raw/web"] == 2


def test_several_patterns_are_one_dataset(scanned: Path) -> None:
    configure()
    lumos = Lumos()
    report = lumos.hints.add("lake/raw/web_log", "lake/raw/pos_log", name="shop_log")
    assert report.hint.patterns == ("raw/web_log", "raw/pos_log")
    assert after(report) == {f"lumos://file{scanned}/raw/shop_log": 4}
    assert "path: [raw/web_log, raw/pos_log], name: shop_log" in Path("lumos.yaml").read_text()


def test_without_a_scan_only_the_hint_is_shown(lake: Path) -> None:
    configure()
    report = Lumos().hints.add("lake/raw/*_log/**", dry_run=True)
    assert (report.root, report.scanned_at, report.effects) == (str(lake), None, ())
    assert (report.hint.files, report.hint.action) == (None, "join")


@pytest.mark.parametrize(
    ("config", "section", "pattern"),
    [
        pytest.param(
            ["sources:", "  - {type: file, path: lake}"],
            "sources[0]", "raw/x/**", id="a source with one root",
        ),
        pytest.param(
            ["sources:", "  - {type: file, paths: [lake, other]}"],
            "scan", "{lake}/raw/x/**", id="a source with two roots",
        ),
        pytest.param(
            ["sources:", "  - {type: file, path: lake}", "  - {type: file, path: lake, exclude: [x]}"],
            "scan", "{lake}/raw/x/**", id="two sources with one root",
        ),
        pytest.param(
            ["sources:", "  - {type: file, path: lake}", "  - {type: file, path: lake/raw}"],
            "scan", "{lake}/raw/x/**", id="a root in another",
        ),
        pytest.param(
            ["sources:", "  - &one {type: file, path: lake}", "  - {<<: *one, path: other}"],
            "scan", "{lake}/raw/x/**", id="a source that others copy",
        ),
    ],
)  # fmt: skip
def test_a_hint_is_written_where_it_is_for_its_files_alone(
    lake: Path, config: list[str], section: str, pattern: str
) -> None:
    configure(*config)
    report = Lumos().hints.add("lake/raw/x/**", name="x")
    assert report.hint.section == f"{section}.datasets"
    assert report.hint.patterns == (pattern.format(lake=lake),)
    assert Lumos().config_check().notes == ()
    (listed,) = Lumos().hints.list().hints
    assert (listed.number, listed.line, listed.name) == (1, report.hint.line, "x")


def test_a_bucket_has_hints_with_addresses() -> None:
    configure(
        "sources:",
        "  - type: s3",
        "    bucket: events",
        "    prefixes: [raw/, curated/]",
        "  - type: s3",
        "    bucket: other",
    )
    hints = Lumos().hints
    several = hints.add("s3://events/raw/*_log/**", name="logs").hint
    assert (several.section, several.patterns) == ("scan.datasets", ("s3://events/raw/*_log/**",))
    one = hints.add("s3://other/{tenant}/**", split=True).hint
    assert (one.section, one.patterns, one.action) == (
        "sources[1].datasets",
        ("{tenant}/**",),
        "split",
    )


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("in_store", [False, True])
def test_the_same_hint_is_kept_once(in_store: bool) -> None:
    configure()
    lumos = Lumos()
    lumos.hints.add("lake/raw/**", in_store=in_store)
    text = Path("lumos.yaml").read_bytes()
    for spelling in ("lake/raw/**", "lake/raw", "lake/raw/", str(Path("lake/raw").absolute())):
        for again in (False, True):
            report = lumos.hints.add(spelling, in_store=again)
            assert (report.change, report.hint.number) == ("unchanged", 1)
    assert Path("lumos.yaml").read_bytes() == text
    assert len(lumos.hints.list().hints) == 1
    with pytest.raises(MisuseError, match="lumos hint remove 1"):
        lumos.hints.add("lake/raw", split=True)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    ("patterns", "options", "words"),
    [
        (["  "], {}, "pattern is empty"),
        (["lake/{x/**"], {}, "braces must contain a name"),
        (["lake/x\ny"], {}, "line break"),
        (
            ["lake/../other/**"],
            {},
            r"is not in a known root. Known roots: .*/lake\. .*lumos ingest",
        ),
        (["lake/*/../x"], {}, "'..' is only allowed at the beginning"),
        (["s3://bucket/a/../b"], {}, "'..' is only allowed at the beginning"),
        (["s3://bucket/raw/**"], {}, "is not in a known root"),
        (["raw/**"], {}, "Did you mean '.*/lake/raw/"),
        (["lake/a", "lake/b"], {}, "--name NAME"),
        (["lake/a", "lake/{b}"], {"name": "x"}, "cannot split them"),
        (["lake/a", "second/b"], {"name": "x"}, "must lie in one root"),
        (["lake/a"], {"name": "x/y"}, "'x/y' cannot be used"),
        (["lake/a"], {"name": " "}, "'name' is empty"),
        (["lake/a"], {"name": "x", "split": True}, "'split' creates several datasets"),
    ],
)
def test_bad_input_is_refused(patterns: list[str], options: dict[str, Any], words: str) -> None:
    roots = "[lake, second]" if "second/b" in patterns else "[lake]"
    file = configure(f"sources: [{{type: file, paths: {roots}}}]")
    text = file.read_bytes()
    with pytest.raises(MisuseError, match=words):
        Lumos().hints.add(*patterns, **options)
    assert file.read_bytes() == text


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("which", [0, 2, "lake/other", "99"])
def test_what_is_not_there_cannot_be_removed(which: int | str) -> None:
    configure()
    Lumos().hints.add("lake/raw")
    with pytest.raises(MisuseError, match="lumos hint list"):
        Lumos().hints.remove(which)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("which", ["1", "raw/**", "raw", "lake/raw/**", "lake/raw"])
def test_a_hint_is_removed_by_number_or_pattern(which: str) -> None:
    text = configure("# mine", "sources:", "- type: file", "  path: lake  # here").read_bytes()
    lumos = Lumos()
    lumos.hints.add("lake/raw/**")
    assert lumos.hints.remove(which).change == "removed"
    assert Path("lumos.yaml").read_bytes() == text
    assert lumos.settings.sources[0].datasets == ()  # type: ignore[attr-defined]


def test_the_hints_of_a_source_count_however_its_root_is_scanned(scanned: Path) -> None:
    configure()
    lumos = Lumos()
    lumos.hints.add("lake/raw/*_log/**", name="logs")
    lumos.ingest(scanned)
    assert f"lumos://file{scanned}/raw/logs" in datasets(lumos)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("in_store", [False, True])
def test_of_several_who_add_the_same_hint_at_once_one_adds_it(in_store: bool) -> None:
    configure()
    Lumos().hints.add("lake/ref", in_store=True)

    def add(_number: int) -> str:
        return Lumos().hints.add("lake/raw/**", name="raw", in_store=in_store).change

    with ThreadPoolExecutor(6) as pool:
        changes = list(pool.map(add, range(6)))
    assert sorted(changes) == ["added", *["unchanged"] * 5]
    assert len(Lumos().hints.list().hints) == 2


@pytest.mark.usefixtures("spark")
def test_hints_of_a_bucket_are_shown_and_applied(lake: Path, bucket: Any) -> None:
    bucket.upload(lake, "raw")
    lumos = Lumos(overrides={"sources": [bucket.section(prefix="raw/")]})
    lumos.ingest()
    report = lumos.hints.add(f"s3://{bucket.name}/raw/raw/*_log/**", name="logs")
    urn = f"lumos://s3/{bucket.name}/raw/raw/logs"
    assert (after(report), report.hint.files) == ({urn: 6}, 6)
    lumos.ingest()
    assert datasets(lumos)[urn] == 6


@pytest.mark.parametrize("lost", ["manifest", "parts"])
def test_a_hint_is_kept_where_its_effect_cannot_be_known(scanned: Path, lost: str) -> None:
    lumos = Lumos()
    for file in Path(lumos.state_uri).rglob("*"):
        if file.is_file() and (file.parent.name == "parts") == (lost == "parts"):
            file.unlink()
    report = lumos.hints.add("lake/raw/**", name="raw")
    assert (report.change, report.scanned_at, report.effects) == ("added", None, ())
    assert [text.startswith("The files of the last scan") for text in report.warnings] == (
        [True] if lost == "parts" else []
    )
    assert [each.files for each in lumos.hints.list().hints] == [None if lost == "parts" else 0]
    lumos.ingest(scanned)
    assert f"lumos://file{scanned}/raw" in datasets(lumos)


def test_the_name_of_another_dataset_is_refused(scanned: Path) -> None:
    write_text(scanned / "raw/logs/part-0.csv", ["order,total,paid", "1,2,3"])
    lumos = Lumos()
    lumos.ingest(scanned)
    taken = rf"lumos://file{scanned}/raw/logs .*--name all_logs"
    for dry_run in (False, True):
        with pytest.raises(MisuseError, match=taken):
            lumos.hints.add("lake/raw/*_log/**", name="logs", dry_run=dry_run)
    text = configure().read_bytes()
    with pytest.raises(MisuseError, match=taken):
        Lumos().hints.add("lake/raw/*_log/**", name="logs")
    assert Path("lumos.yaml").read_bytes() == text
    assert Lumos().hints.list().hints == ()
    added = Lumos().hints.add("lake/raw/*_log/**", name="all_logs")
    assert after(added) == {f"lumos://file{scanned}/raw/all_logs": 6}
    # A dataset that the hint takes in may give its name.
    assert Lumos().hints.preview("lake/raw/logs", "lake/ref", name="customers").change == "added"
    assert Lumos().hints.preview("lake/raw/logs/**", name="logs").warnings == ()


def test_a_dataset_keeps_its_urn_and_history_beside_a_hint_of_the_same_name(scanned: Path) -> None:
    write_text(scanned / "raw/logs/part-0.csv", ["order,total,paid", "1,2,3"])
    configure()
    lumos = Lumos()
    lumos.ingest()
    urn = f"lumos://file{scanned}/raw"
    found = datasets(lumos)
    configure(
        "sources:",
        "  - {type: file, path: lake, datasets: [{path: raw/*_log/**, name: logs}]}",
    )
    lumos = Lumos()
    report = lumos.ingest()
    (remark,) = report.problems
    assert (remark.code, remark.remark) == ("name_taken", True)
    assert f"{scanned}/raw/all_logs" in remark.reason
    changed = {each.urn: each.change for each in report.datasets}
    assert changed[f"{urn}/logs"] == "unchanged"
    assert datasets(lumos)[f"{urn}/all_logs"] == 6
    assert not any("%2A" in each for each in datasets(lumos))
    configure()
    lumos = Lumos()
    report = lumos.ingest()
    assert report.problems == ()
    assert datasets(lumos) == found
    assert {each.urn: each.change for each in report.datasets}[f"{urn}/logs"] == "unchanged"
    assert len(lumos.history(f"{urn}/logs").versions) == 1
