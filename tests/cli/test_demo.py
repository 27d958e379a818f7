"""`make demo` as it is told, in process."""

import importlib
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

_DEMO = Path(__file__).parents[2] / "demo"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(_DEMO))
    return importlib.import_module("run")


@pytest.mark.usefixtures("spark")
def test_the_demo_names_the_models_that_break(demo: Any, lumos: Any, workplace: Path) -> None:
    printed: dict[str, str] = {}

    def run(*words: str, code: int = 0) -> None:
        result = lumos(*words)
        assert result.code == code, result.err
        printed[shlex.join(words)] = result.out

    lines_shown: list[str] = []
    demo.tell(
        workplace,
        run=run,
        say=lambda *lines: lines_shown.extend(lines),
        today=datetime.now(UTC).date(),
    )
    assert max(map(len, lines_shown)) <= 98
    scanned = printed["ingest --exit-code"]
    line = (workplace / "models/customer_360.sql").read_text().splitlines()[6]
    assert "k.user_id" in line
    assert (
        "user_id became INT64: breaks customer_360 (analytics-team), models/customer_360.sql:7"
        in scanned
    )
    assert "discount was removed: breaks revenue (finance-team), models/revenue.sql:7" in scanned
    # It casts the user ids, and goes on.
    assert "breaks page_views" not in scanned
    assert "models/revenue.sql:6" in printed["impact orders --drop amount"]
    assert "$974.70" in printed["cost top --by total -n 6"]
    assert "snapshot.json is valid" in printed["validate snapshot.json"]


def test_the_demo_ends_with_a_command_that_works_from_where_one_stands(
    demo: Any, capsys: pytest.CaptureFixture[str], workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workplace / "a folder" / "demo"
    monkeypatch.setattr(demo, "PLACE", place)
    monkeypatch.setattr(demo, "tell", lambda *_words, **_facts: place.mkdir(parents=True))
    demo.main()
    *_, last = capsys.readouterr().out.splitlines()
    program, *words = shlex.split(last)
    assert Path(program).samefile(demo.LUMOS)
    assert words[:3] == ["show", "user_clicks", "--config"]
    assert Path(words[3]) == Path("a folder/demo/lumos.yaml")
