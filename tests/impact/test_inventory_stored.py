"""The sample estate in a store, its files taken in as anybody's: the store loses nothing."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from impact.cases import Case, cases
from impact.inventory_graph import InventoryDownstream
from impact.sample_inventory import DIALECTS, FOLDER, load_sample_inventory
from lumos import Lumos
from lumos.impact.reports import DownstreamReport, ImpactReport
from lumos.impact.reports import downstream_report as reported
from lumos.impact.rules.results import DatasetImpact
from lumos.model.urn import Urn
from recorded_lake import RecordedLake

INVENTORY = load_sample_inventory()
DOWNSTREAM = InventoryDownstream(INVENTORY)
CASES = {case.id: case for case in cases()}
IN_WORDS = ("change", "drop", "rename")
_URN = re.compile(r"lumos://[\w/]+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of the estate in a working folder."""
    place = tmp_path_factory.mktemp("estate")
    shutil.copytree(FOLDER, place, dirs_exist_ok=True)
    before = Path.cwd()
    os.chdir(place)
    yield place
    os.chdir(before)


@pytest.fixture(scope="module")
def lumos(folder: Path) -> Lumos:
    """Tables whose schemas are known, as if scanned, and all that files tell of lineage."""
    lumos = Lumos(environment={}, overrides={"storage.path": str(folder / "lumos.db")})
    seen = RecordedLake(lumos)
    for name, table in INVENTORY.tables.items():
        seen.see(name.replace(".", "/"), str(table.schema))
    for dialect in DIALECTS:
        lumos.lineage.ingest(dialect, dialect=dialect, name_from="{schema}.{table}.sql")
    lumos.lineage.ingest("edges.yaml")
    return lumos


def _asked(lumos: Lumos, case: Case, folder: Path) -> ImpactReport:
    dataset = f"lumos://file/lake/{case.dataset.replace('.', '/')}"
    if case.operation in IN_WORDS:
        return lumos.impact.of(dataset, **{case.operation: [case.argument]})
    file = folder / "proposed.txt"
    file.write_text(str(case.proposed), encoding="utf-8")
    return lumos.impact.of(dataset, proposed=file, kind="lumos")


def _name(urn: str) -> str:
    path = Urn.parse(urn).path
    return ".".join(path[1:] if path[0] == "lake" else path)


def _summary(row: DownstreamReport) -> dict[str, object]:
    """What is said of a dataset, with names in the place of URNs and in whatever order."""
    return {
        "verdict": row.verdict,
        "distance": row.distance,
        "owners": row.owners,
        "changed": {(each.name, each.before, each.after) for each in row.changed},
        "reasons": {
            (_URN.sub(lambda urn: _name(urn.group()), each.text), each.usage, each.clause,
             each.file, each.line)
            for each in row.reasons
        },
    }  # fmt: skip


def _expected(found: DatasetImpact) -> dict[str, object]:
    return _summary(reported(found, is_deleted=False))


@pytest.mark.parametrize("id", CASES)
def test_the_store_says_what_the_files_say(id: str, lumos: Lumos, folder: Path) -> None:
    case = CASES[id]
    found = {_name(row.urn): _summary(row) for row in _asked(lumos, case, folder).downstream}
    pure = {each.urn: _expected(each) for each in DOWNSTREAM.impact_of_case(case).downstream}
    assert found.keys() == pure.keys()
    assert found == pure
