"""What the command line says of a dataset that came apart."""

from typing import Any

import pytest

from discovery.scripted_lake import OLD, OLD_URN, Lake, dataset, parts
from lumos import Lumos
from lumos.discovery.ingest import build_report
from recorded_lake import RecordedLake

SUMMARY = "split into 12 datasets: part_000, part_001, part_002 and 9 more"


@pytest.fixture
def lake(workplace: Any) -> Lake:  # noqa: ARG001
    made = Lake(RecordedLake(Lumos()))
    made.scan([dataset(OLD)])
    return made


def test_ingest_names_the_dataset_and_its_parts(
    lake: Lake, lumos: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = build_report([lake.scan(parts(12))], ("/lake",), [], seconds=0.1)
    monkeypatch.setattr(Lumos, "ingest", lambda *_, **__: report)
    shown = lumos("ingest", "/lake")
    assert f"events  {SUMMARY}" in shown.out.splitlines()
    assert "12 datasets: 12 new, 0 changed, 0 unchanged, 0 missing" in shown.out


def test_changes_and_history_report_the_split(lake: Lake, lumos: Any) -> None:
    lake.scan(parts(12))
    (_, line) = lumos("changes", "--type", "SPLIT").out.splitlines()[:2]
    assert line.endswith(f"events   {SUMMARY}")
    assert "SPLIT" in lumos("changes", "--help").out
    assert SUMMARY in lumos("history", OLD_URN).out
    assert "first seen; split from events" in lumos("history", "part_000").out


def test_show_says_what_became_of_the_old_dataset(lake: Lake, lumos: Any) -> None:
    lake.scan(parts(12))
    shown = lumos("show", OLD_URN).out
    assert f"was {SUMMARY}" in shown
    assert " part_009\n" in shown
    assert "and 2 more: lumos show --json events" in shown
    assert len(lumos("show", "--json", OLD_URN).json["split"]["parts"]) == 12
    assert "split into other datasets" in lumos("version", "show", OLD_URN).out
