"""lumos migrate on the command line."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Governance, Lineage, UpstreamEdge
from snapshots.stores import fill

FILE = "datahub-file:estate.json"
ORDERS, REVENUE = "lumos://s3/lake/orders", "lumos://s3/lake/revenue"


@pytest.fixture
def catalog_file(workplace: Path) -> Path:
    """A working folder whose store holds two datasets, one made from the other."""
    orders = CatalogEntry(
        urn=ORDERS, name="orders", platform="s3", governance=Governance(tags=("pii", "gold: 1"))
    )
    made = Lineage(upstream=(UpstreamEdge(urn=ORDERS),))
    revenue = CatalogEntry(urn=REVENUE, name="revenue", platform="s3", lineage=made)
    fill(Lumos(), {"datasets": [orders, revenue]})
    return workplace


@pytest.mark.usefixtures("catalog_file")
def test_a_migration_reports_in_the_words_of_a_comparison(lumos: Any) -> None:
    done = lumos("migrate", "--source", "local", "--target", FILE)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "[ok] 2 datasets and 1 lineage edge exported from local and validated"
    assert lines[-3:-1] == ["[ok] 2/2 datasets migrated", "[ok] 1/1 lineage edges migrated"]
    assert lines[-1].startswith("Certificate: ")
    done = lumos("migrate", "--source", "local", "--target", FILE, "--json")
    assert done.json["verified"]["datasets"] == {"source": 2, "target": 2}
    assert done.json["imported"]["sums"]["kinds"]["datasets"]["unchanged"] == 2
    done = lumos("migrate", "--source", "local", "--target", FILE, "--rollback")
    assert done.out.startswith(
        f"[ok] The migration from local to {FILE} was rolled back: 0 entries"
    )
    assert done.code == 0


@pytest.mark.usefixtures("catalog_file")
def test_manual_steps_are_printed_as_lines_to_paste(lumos: Any) -> None:
    labels = Governance(tags=("Pii.None", "PII", "Gold 1"))
    DatahubFile.at("estate.json").put(
        CatalogEntry(urn="lumos://s3/lake/x", name="x", platform="s3", governance=labels)
    )
    done = lumos("migrate", "--source", "local", "--target", FILE, "--dry-run")
    assert done.code == 0
    assert "remark   2 tags require manual mapping" in done.err
    assert done.out.splitlines()[-5:] == [
        "Similar to names in the target; to map them, give --mapping a file with:",
        "  tags:",
        '    "gold: 1": "Gold 1"',
        "    pii: PII",
        f"Nothing was written to datahub-file:{Path('estate.json').resolve()}.",
    ]
    pasted = done.out.splitlines()[-4:-1]
    Path("mapping.yaml").write_text("\n".join(line[2:] for line in pasted))
    words = ("migrate", "--source", "local", "--target", FILE, "--mapping", "mapping.yaml")
    done = lumos(*words)
    assert (done.code, "manual mapping" in done.err) == (0, False)
    sides = ("diff", "--source", "local", "--target", FILE, "--aspect", "lineage")
    assert lumos(*sides, "--aspect", "governance").code == 10
    done = lumos(*sides, "--aspect", "governance", "--mapping", "mapping.yaml")
    assert "manual mapping" not in done.out + done.err
    assert "migrated" not in done.out
    there = DatahubFile.at("estate.json").get(ORDERS)
    assert there is not None
    assert there.governance == Governance(tags=("PII", "Gold 1"))


@pytest.mark.usefixtures("catalog_file")
def test_what_a_catalog_lost_has_an_exit_code(lumos: Any, monkeypatch: Any) -> None:
    read = DatahubFile.get_many

    def forgets(self: DatahubFile, urns: Any) -> Any:
        return {urn: entry for urn, entry in read(self, urns).items() if urn != REVENUE}

    monkeypatch.setattr(DatahubFile, "get_many", forgets)
    done = lumos("migrate", "--source", "local", "--target", FILE)
    assert done.code == 1
    assert "[warn] 1/2 datasets migrated" in done.out
    assert "[warn] 0/1 lineage edges migrated" in done.out
    assert "problem  revenue is missing" in done.err
    assert "The snapshot of local is kept in " in done.out


@pytest.mark.usefixtures("catalog_file")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--target", FILE], 2),
        (["--source", "local", "--target", "local"], 2),
        (["--source", "local", "--target", FILE, "--dry-run", "--resume"], 2),
        (["--source", "local", "--target", FILE, "--rollback", "--keep", "a.json"], 2),
        (["--source", "local", "--target", FILE, "--rollback"], 2),
        (["--source", "local", "--target", FILE, "--mapping", "no.yaml"], 2),
        (["--source", "datahub-file:no.json", "--target", "local"], 2),
        (["--source", "lokal", "--target", FILE], 2),
    ],
)
def test_a_wrong_word_gets_an_answer(lumos: Any, words: list[str], code: int) -> None:
    assert lumos("migrate", *words).code == code
