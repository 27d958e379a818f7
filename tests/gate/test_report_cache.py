"""Reports of earlier runs: equal, and never used if anything differs that a verdict depends on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gate.sample import REPORT, USERS, SampleRepository, code
from lumos import Lumos
from lumos.gate import judgement, report_cache
from lumos.gate.reports import GateReport
from lumos.gate.service import Gate


@pytest.fixture
def repository(workplace: Path) -> SampleRepository:
    """A change that removes a column which models read."""
    found = SampleRepository(workplace)
    found.commit({"schemas/users.schema": USERS.replace("email STRING\n", "")})
    return found


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The changes that were judged, not taken from the cache."""
    found: list[object] = []
    judge = judgement.judge_change

    def counted(change: object, *arguments: object, **options: object) -> GateReport:
        found.append(change)
        return judge(change, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(judgement, "judge_change", counted)
    return found


def test_a_second_run_judges_nothing(repository: SampleRepository, judged: list[object]) -> None:
    assert repository.check() == repository.check()
    assert len(judged) == 1


def test_another_commit_is_judged_again(repository: SampleRepository, judged: list[object]) -> None:
    assert code(repository.check()) == 10
    repository.commit({"schemas/users.schema": USERS})
    assert code(repository.check()) == 0
    assert len(judged) == 2


def test_another_base_is_judged_again(repository: SampleRepository, judged: list[object]) -> None:
    assert code(repository.check()) == 10
    assert code(repository.check("HEAD")) == 0
    assert len(judged) == 2


def test_another_configuration_and_dialect_are_judged_again(
    repository: SampleRepository, judged: list[object]
) -> None:
    repository.check()
    (repository.folder / "lumos.yaml").write_text("gate: {block: []}\n")
    assert code(repository.check()) == 0
    repository.check(dialect="spark")
    Lumos(environment={"LUMOS_ENVIRONMENT": "staging"}).gate.check("main")
    assert len(judged) == 4


def test_another_version_is_judged_again(
    repository: SampleRepository, judged: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.check()
    monkeypatch.setattr(report_cache, "__version__", "999.0")
    repository.check()
    assert len(judged) == 2


def test_lineage_from_elsewhere_is_read_every_time(
    repository: SampleRepository, judged: list[object]
) -> None:
    (repository.folder / "elsewhere.sql").write_text(REPORT)
    for _ in range(2):
        repository.check(lineage="elsewhere.sql")
    assert len(judged) == 2


def test_a_waiver_expires_though_nothing_else_changes(repository: SampleRepository) -> None:
    now = datetime.now(UTC)
    gate = Lumos(environment={}).gate
    waivers = "".join(
        f"- {{fingerprint: '{each.fingerprint}', reason: x, approver: analytics-team, "
        f"expires: '{now.date()}'}}\n"
        for each in gate.check("main").findings
    )
    repository.commit({".lumos/waivers.yaml": f"waivers:\n{waivers}"})
    assert code(gate.check("main")) == 0
    tomorrow = Gate(
        gate._open_workspace,
        gate._settings,
        configured=gate._configured,
        store=gate._store,
        existing_store=gate._existing_store,
        clock=lambda: now + timedelta(days=1),
    )
    assert code(tomorrow.check("main")) == 10


def test_a_broken_report_is_not_used(repository: SampleRepository) -> None:
    first = repository.check()
    for file in (repository.folder / ".git/lumos/gate").glob("*.json"):
        file.write_text("{")
    assert repository.check() == first


def test_only_the_last_reports_are_kept(repository: SampleRepository) -> None:
    folder = repository.folder / ".git/lumos/gate"
    repository.check()
    for number in range(30):
        (folder / f"{number}.json").write_text("{}")
    repository.commit({})
    repository.check()
    assert len(list(folder.glob("*.json"))) == 20
