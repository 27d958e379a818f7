"""lumos export, validate, import and diff on the command line."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.model.dataset import Governance
from recorded_lake import RecordedLake
from snapshots.sample_inventories import NOON, customers, everything
from snapshots.stores import fill, write


@pytest.fixture
def catalog_file(workplace: Path) -> Path:
    """A working folder whose store holds everything once."""
    fill(Lumos(), everything())
    return workplace


@pytest.mark.usefixtures("catalog_file")
def test_a_snapshot_is_exported_validated_and_compared(lumos: Any) -> None:
    done = lumos("export", "--platform", "local", "--output", "backup.json")
    assert (done.code, done.out.splitlines()[:2]) == (0, ["[ok] 2 datasets", "[ok] 1 lineage edge"])
    done = lumos("validate", "--input", "backup.json")
    assert done.code == 0
    assert done.out.splitlines()[:3] == [
        "[ok] 2 datasets",
        "[ok] 1 lineage edge",
        "[ok] All references resolved",
    ]
    done = lumos("diff", "--source", "backup.json", "--target", "local")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Nothing differs in 2 datasets and 1 lineage edge.\n"


@pytest.mark.usefixtures("catalog_file")
def test_differences_have_exit_codes_of_their_own(lumos: Any) -> None:
    lumos("export", "--output", "backup.json")
    store = fill(Lumos(), {})
    governance = Governance(tags=("pii",), terms=("Customer",), compliance=("GDPR",))
    write(store, msgspec.structs.replace(customers(), governance=governance))
    done = lumos("diff", "--source", "backup.json", "--target", "local")
    assert done.code == 3
    assert "Tags of backup.json that local lacks: tier-1." in done.out
    assert "governance removed tags tier-1 compatible" in done.words
    write(store, msgspec.structs.replace(customers(), governance=governance, ownership=None))
    done = lumos("diff", "--source", "backup.json", "--target", "local", "--json")
    assert done.code == 10
    assert done.json["summary"]["breaking"] == 2
    assert lumos("diff", "--source", "local", "--target", "no.json").code == 2


@pytest.mark.usefixtures("catalog_file")
def test_measurements_are_one_line_unless_asked_for(lumos: Any) -> None:
    lumos("export", "--output", "backup.json")
    quality = msgspec.structs.replace(
        customers().quality, score=0.5, measured_at=NOON, freshness=None
    )
    changed = msgspec.structs.replace(customers(), quality=quality, ownership=None)
    write(fill(Lumos(), {}), changed)
    words = ("diff", "--source", "backup.json", "--target", "local")
    lines = [line.split() for line in lumos(*words).out.splitlines()]
    assert [line[:2] for line in lines[:4]] == [
        ["customers"], ["ownership", "removed"], ["ownership", "removed"], ["quality", "changed"],
    ]  # fmt: skip
    summary = "Measurements of 1 dataset differ (2 values: measured at, freshness); --verbose"
    assert " ".join(lines[4]).startswith(summary)
    listed = lumos(*words, "--aspect", "quality").words
    assert "quality added measured_at" in listed
    assert "Measurements" not in listed
    assert "quality added measured_at" in lumos(*words, "--verbose").words


def test_every_problem_of_a_snapshot_is_reported_with_its_position(
    lumos: Any, catalog_file: Path
) -> None:
    lumos("export", "--output", "backup.json")
    document = json.loads((catalog_file / "backup.json").read_text())
    document["datasets"][1]["name"] = "edited"
    document["datasets"][0]["urn"] = 7
    (catalog_file / "edited.json").write_text(json.dumps(document))
    done = lumos("validate", "--input", "edited.json")
    assert done.code == 1
    assert "[error] datasets[0].urn: Expected `str`, got `int`." in done.out
    assert "[error] datasets[1]: " in done.out
    done = lumos("validate", "--input", "edited.json", "--json")
    assert (done.code, done.json["valid"]) == (1, False)
    assert {problem["path"] for problem in done.json["problems"]} >= {
        "datasets[0].urn",
        "datasets[1]",
    }
    assert lumos("validate", "--input", "no.json").code == 2


@pytest.mark.usefixtures("catalog_file")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["export", "--output", "a.json", "--platform", "datahubfile"], "datahub-file"),
        (["export", "--output", "a.txt"], "extension"),
        (["export", "--output", "a.json", "--format", "jsonl"], "does not end in .jsonl"),
        (["export", "--output", "a.json", "--platform", "datahub-file:"], "has no address"),
        (["export", "--output", "a.json", "--platform", "datahub-file:no.json"], "no.json"),
        (["diff", "--source", "local", "--target", "lokal"], "Did you mean 'local'?"),
        (["diff", "--source", "local", "--target", "local", "--aspect", "owner"], "ownership"),
    ],
)
def test_a_wrong_word_gets_an_answer(lumos: Any, words: list[str], complaint: str) -> None:
    done = lumos(*words)
    assert (done.code, complaint in done.err) == (2, True)


def test_a_count_that_contradicts_the_header_is_not_called_good(
    lumos: Any, catalog_file: Path
) -> None:
    lumos("export", "--output", "backup.yaml")
    text = (catalog_file / "backup.yaml").read_text()
    (catalog_file / "cut.yaml").write_text(text[: text.index("datasets:\n-")])
    done = lumos("validate", "--input", "cut.yaml")
    assert done.code == 1
    assert "Expected 2 datasets, found 0" in done.out
    assert "[ok] 0 datasets" not in done.out
    assert lumos("diff", "--source", "cut.yaml", "--target", "backup.yaml").code == 1


@pytest.mark.usefixtures("catalog_file")
def test_sentences_of_a_refused_import_end(lumos: Any) -> None:
    Path("new.json").write_text('{"format": "lumos-snapshot", "format_version": "7.0"}')
    done = lumos("import", "--input", "new.json")
    assert (done.code, "--upgrade lumos. Nothing was imported." in done.err) == (1, True)


def test_a_snapshot_is_imported_again_and_taken_back(lumos: Any, catalog_file: Path) -> None:
    lumos("export", "--output", "backup.json")
    here = ("--store", "other.db")
    done = lumos("import", "--input", "backup.json", "--dry-run", *here)
    assert (done.code, "created" in done.out) == (0, True)
    assert not (catalog_file / "other.db").exists()
    done = lumos("import", "--input", "backup.json", "--platform", "local", *here)
    assert (done.code, "datasets 2 0 0 0" in done.words) == (0, True)
    assert "[ok] Imported backup.json into local." in done.out
    assert lumos("diff", "--source", "backup.json", "--target", "local", *here).code == 0
    done = lumos("import", "--input", "backup.json", "--json", *here)
    assert done.json["sums"]["kinds"]["datasets"]["unchanged"] == 2
    done = lumos("import", "--platform", "local", "--rollback", *here)
    assert (done.code, "0 entries restored, 10 removed" in done.out) == (0, True)
    assert lumos("list", *here, "--json").json["datasets"] == []


def test_an_estate_moves_through_a_metadata_file(lumos: Any, workplace: Path) -> None:
    datasets = [msgspec.structs.replace(each, raw={}) for each in everything()["datasets"]]
    fill(Lumos(), {"datasets": datasets})
    assert lumos("export", "--output", "backup.yaml").code == 0
    there = "datahub-file:estate.json"
    done = lumos("import", "--input", "backup.yaml", "--platform", there)
    assert (done.code, "cost: in the custom properties of 1 dataset" in done.out) == (0, True)
    assert lumos("diff", "--source", "backup.yaml", "--target", there).code == 0
    assert lumos("export", "--platform", there, "--output", "again.json").code == 0
    done = lumos("import", "--input", "again.json", "--store", "second.db")
    assert done.code == 0
    done = lumos("diff", "--source", "backup.yaml", "--target", "local", "--store", "second.db")
    assert (done.code, "Nothing differs in 2 datasets" in done.out) == (0, True)
    assert (workplace / "estate.json").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["import"], 2),
        (["import", "--input", "no.json"], 2),
        (["import", "--input", "a.json", "--dry-run", "--resume"], 2),
        (["import", "--platform", "local", "--rollback"], 2),
        (["import", "--input", "lumos.yaml"], 1),
    ],
)
@pytest.mark.usefixtures("catalog_file")
def test_an_import_that_cannot_be_is_refused(lumos: Any, words: list[str], code: int) -> None:
    Path("lumos.yaml").write_text("platform: local\n")
    assert lumos(*words).code == code


def test_a_certificate_is_checked(lumos: Any, workplace: Path) -> None:
    RecordedLake(Lumos()).see_all(["sales/orders"], "id INT64")
    target = "datahub-file:estate.json"
    planned = lumos("migrate", "local", target, "--plan")
    assert "dataset.schema 1 native" in planned.words
    assert "Runbook 1. Back up the target: lumos export" in planned.words
    assert lumos("migrate", "local", target, "--certificate", "c.json").code == 0
    same = lumos("migrate", "verify", "c.json")
    assert same.code == 0
    assert "[ok] 1/1 entries are as they were migrated" in same.out
    (workplace / "estate.json").write_text("[]")
    gone = lumos("migrate", "verify", "c.json")
    assert gone.code == 1
    assert "orders is missing now" in gone.err
    assert lumos("migrate", "verify", "absent.json").code == 2
