"""lumos export, validate, import and diff on the command line."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.model.dataset import Governance
from snapshot.estates import customers, everything
from snapshot.stores import fill, write


@pytest.fixture
def estate(workplace: Path) -> Path:
    """A working folder whose store holds everything once."""
    fill(Lumos(), everything())
    return workplace


@pytest.mark.usefixtures("estate")
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
    assert "[ok] 2/2 datasets migrated" in done.out
    assert "[ok] 1/1 lineage edges migrated" in done.out


@pytest.mark.usefixtures("estate")
def test_differences_have_exit_codes_of_their_own(lumos: Any) -> None:
    lumos("export", "--output", "backup.json")
    store = fill(Lumos(), {})
    governance = Governance(tags=("pii",), terms=("Customer",), compliance=("GDPR",))
    write(store, msgspec.structs.replace(customers(), governance=governance))
    done = lumos("diff", "--source", "backup.json", "--target", "local")
    assert done.code == 3
    assert "[warn] 1 tag requires manual mapping" in done.out
    assert "governance removed tags tier-1 non-breaking" in done.words
    write(store, msgspec.structs.replace(customers(), governance=governance, ownership=None))
    done = lumos("diff", "--source", "backup.json", "--target", "local", "--json")
    assert done.code == 10
    assert done.json["summary"]["breaking"] == 2
    assert lumos("diff", "--source", "local", "--target", "no.json").code == 2


def test_every_problem_of_a_snapshot_is_told_with_its_place(lumos: Any, estate: Path) -> None:
    lumos("export", "--output", "backup.json")
    document = json.loads((estate / "backup.json").read_text())
    document["datasets"][1]["name"] = "edited"
    document["datasets"][0]["urn"] = 7
    (estate / "edited.json").write_text(json.dumps(document))
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


@pytest.mark.usefixtures("estate")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["export", "--output", "a.json", "--platform", "datahubfile"], "datahub-file"),
        (["export", "--output", "a.txt"], "endings"),
        (["diff", "--source", "local", "--target", "lokal"], "Did you mean 'local'?"),
        (["diff", "--source", "local", "--target", "local", "--aspect", "owner"], "ownership"),
    ],
)
def test_a_wrong_word_gets_an_answer(lumos: Any, words: list[str], complaint: str) -> None:
    done = lumos(*words)
    assert (done.code, complaint in done.err) == (2, True)
