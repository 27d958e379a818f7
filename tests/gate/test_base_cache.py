"""The cache of merge bases: equal reports, fewer files read, and no harm from a broken cache."""

import os
from pathlib import Path

import pytest

from gate.sample import REPORT, USERS, SampleRepository
from lumos import Lumos
from lumos.lineage.service import LineageService

BROKEN_USERS = USERS.replace("email STRING\n", "")


@pytest.fixture
def repository(workplace: Path) -> SampleRepository:
    """A change that removes a column which models read."""
    found = SampleRepository(workplace)
    found.commit({"schemas/users.schema": BROKEN_USERS})
    return found


def cached(repository: SampleRepository) -> list[Path]:
    return sorted((repository.folder / ".git/lumos/gate").glob("*.db"))


def forget_reports(repository: SampleRepository) -> None:
    """Remove the reports of earlier runs, so that the change is judged again."""
    for file in (repository.folder / ".git/lumos/gate").glob("*.json"):
        file.unlink()


def test_a_second_run_reads_no_model_again(
    repository: SampleRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository.check()
    read: list[object] = []
    ingest = LineageService.ingest

    def counted(self: LineageService, *paths: object, **options: object) -> object:
        read.extend(paths)
        return ingest(self, *paths, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LineageService, "ingest", counted)
    forget_reports(repository)
    assert repository.check() == first
    assert read == []


def test_the_next_commit_of_a_change_starts_from_the_cached_base(
    repository: SampleRepository,
) -> None:
    repository.check()
    repository.commit({"models/report.sql": REPORT.replace("email, ", "")})
    warm = repository.check()
    forget_reports(repository)
    for file in cached(repository):
        file.unlink()
    cold = repository.check()
    assert warm == cold
    assert len(cached(repository)) == 1


def test_another_base_and_another_configuration_are_not_mixed_up(
    repository: SampleRepository,
) -> None:
    repository.check()
    (repository.folder / "lumos.yaml").write_text("owners: {groups: [analytics-*]}\n")
    repository.check()
    repository.git("checkout", "-q", "main")
    repository.commit({"models/other.sql": "select email from users"})
    repository.git("checkout", "-q", "change")
    repository.git("rebase", "-q", "main")
    report = repository.check()
    assert len(cached(repository)) == 3
    assert {"other", "customer_360"} <= {each.affected for each in report.findings}


def test_a_moved_model_is_judged_as_without_the_cache(repository: SampleRepository) -> None:
    repository.check()
    text = (repository.folder / "models/report.sql").read_text()
    repository.commit({"models/report.sql": None, "models/moved/report.sql": text})
    warm = repository.check()
    forget_reports(repository)
    for file in cached(repository):
        file.unlink()
    assert repository.check() == warm


def test_settings_from_elsewhere_count_too(repository: SampleRepository) -> None:
    repository.check()
    Lumos(environment={"LUMOS_ENVIRONMENT": "staging"}).gate.check("main")
    assert len(cached(repository)) == 2


def test_only_the_last_stores_are_kept(repository: SampleRepository) -> None:
    for number in range(5):
        (repository.folder / "lumos.yaml").write_text(f"environment: e{number}\n")
        repository.check()
    assert len(cached(repository)) == 3


def test_a_broken_cache_is_not_used(repository: SampleRepository) -> None:
    first = repository.check()
    (file,) = cached(repository)
    file.write_bytes(b"not a database")
    forget_reports(repository)
    assert repository.check() == first


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_a_read_only_repository_is_checked_without_cache(repository: SampleRepository) -> None:
    git = repository.folder / ".git"
    git.chmod(0o500)
    try:
        assert repository.check().findings
    finally:
        git.chmod(0o700)
    assert cached(repository) == []


def test_a_cache_that_cannot_be_written_does_no_harm(repository: SampleRepository) -> None:
    (repository.folder / ".git/lumos").write_text("a file where the folder should be")
    assert repository.check().findings
