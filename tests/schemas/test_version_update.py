"""`lumos version update`: versions of a run, and the tag that records them."""

import subprocess
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.model.schema import parse_schema
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.reports import DatasetVersions, VersionUpdateReport
from lumos.schemas.version_tags import VersionTag, changed_versions, run_versions
from recorded_lake import RecordedLake

CLICKS = "user_id STRING\npage STRING"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def lake(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    """A store with two datasets in the working tree of a repository."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "jane")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "jane@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git("init", "--quiet", "--initial-branch", "main")
    (workplace / "model.sql").write_text("select 1\n", encoding="utf-8")
    git("add", "model.sql")
    git("commit", "--quiet", "-m", "Models")
    found = RecordedLake(Lumos())
    found.see_all(["clicks", "orders"], CLICKS)
    return found


def tagged(lake: RecordedLake, **options: str | bool) -> VersionUpdateReport:
    return lake.lumos.version.update(auto_increment=True, create_git_tag=True, **options)  # type: ignore[arg-type]


def moves(report: VersionUpdateReport) -> list[tuple[str, str | None, str | None, str]]:
    return [
        (
            each.name,
            each.before and f"{each.before.cloud_version} {each.before.schema_version}",
            each.after and f"{each.after.cloud_version} {each.after.schema_version}",
            each.level,
        )
        for each in report.datasets
    ]


def test_the_first_tag_records_all_datasets_and_the_next_one_lists_what_moved(
    lake: RecordedLake,
) -> None:
    first = tagged(lake)
    assert (first.git_tag, first.previous_tag, first.changes_detected) == ("vS-1", None, 2)
    assert git("cat-file", "-t", "vS-1") == "tag"
    assert git("rev-parse", "vS-1^{commit}") == first.commit == git("rev-parse", "HEAD")
    message = git("for-each-ref", "--format=%(contents)", "refs/tags/vS-1")
    assert "lumos://file/lake/clicks S-1 1.0.0" in message.splitlines()

    lake.see("clicks", f"{CLICKS}\nat DATE")
    lake.see("clicks", "page STRING\nat DATE")
    lake.see("orders", CLICKS)
    second = tagged(lake)
    assert moves(second) == [
        ("clicks", "S-1 1.0.0", "S-3 2.0.0", "major"),
        ("orders", "S-1 1.0.0", "S-2 1.0.0", "none"),
    ]
    assert (second.git_tag, second.previous_tag) == ("vS-3", "vS-1")
    assert (second.cloud_version, second.schema_version) == ("S-3", "2.0.0")

    again = tagged(lake)
    assert (again.git_tag, again.cloud_version, again.datasets) == (None, "S-3", ())
    assert git("tag", "--list").split() == ["vS-1", "vS-3"]


def test_a_run_that_only_moves_a_dataset_with_few_versions_still_gets_a_new_tag(
    lake: RecordedLake,
) -> None:
    for _ in range(3):
        lake.see("clicks", CLICKS)
    assert tagged(lake).git_tag == "vS-4"
    lake.see("orders", CLICKS)
    report = tagged(lake)
    assert moves(report) == [("orders", "S-1 1.0.0", "S-2 1.0.0", "none")]
    assert (report.git_tag, report.schema_version) == ("vS-5", "1.0.1")


def test_new_and_gone_datasets_are_listed(lake: RecordedLake) -> None:
    tagged(lake)
    lake.lose("orders")
    lake.see("users", CLICKS)
    report = tagged(lake)
    assert [(name, level) for name, _, _, level in moves(report)] == [
        ("lumos://file/lake/orders", "major"),
        ("users", "minor"),
    ]
    assert report.schema_version == "2.0.0"


def test_a_renamed_dataset_keeps_its_versions(lake: RecordedLake) -> None:
    tagged(lake)
    lake.see("visits", CLICKS, renamed_from="clicks")
    (moved,) = tagged(lake).datasets
    assert (moved.name, moved.before is not None) == ("visits", True)


def test_versions_that_schemas_need_are_raised_by_their_findings(lake: RecordedLake) -> None:
    # As an import may, which changes a schema without a version.
    with lake.store.transaction() as transaction:
        hash = transaction.save_schema(parse_schema("user_id STRING"))
    with lake.lumos.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE dataset SET schema_hash = ? WHERE name = 'orders'", (hash,)
        )
    update = lake.lumos.version.update
    planned = update(auto_increment=True, dry_run=True)
    assert (planned.changes_detected, planned.raised, planned.git_tag) == (1, 0, None)
    assert lake.lumos.version.show("orders").cloud_version == "S-1", "a dry run writes nothing"
    done = update(auto_increment=True)
    assert moves(done) == [("orders", "S-1 1.0.0", "S-2 2.0.0", "major")]
    assert (done.raised, done.cloud_version, done.schema_version) == (1, "S-2", "2.0.0")
    assert lake.lumos.version.map("orders").versions == {"S-1": "1.0.0", "S-2": "2.0.0"}
    assert update(auto_increment=True).changes_detected == 0


def test_a_dry_run_names_the_tag_and_creates_none(lake: RecordedLake) -> None:
    report = tagged(lake, dry_run=True)
    assert report.git_tag == "vS-1"
    assert git("tag", "--list") == ""


def test_versions_reach_the_catalog(lake: RecordedLake) -> None:
    Path("lumos.yaml").write_text("platform: datahub-file:catalog.json\n", encoding="utf-8")
    assert lake.store is not None
    Lumos().version.update(create_git_tag=True)
    published = Path("catalog.json").read_text(encoding="utf-8")
    assert "clicks" in published
    assert "S-1" in published


def test_a_dirty_tree_is_refused_and_untracked_files_are_not(lake: RecordedLake) -> None:
    Path("model.sql").write_text("select 2\n", encoding="utf-8")
    with pytest.raises(MisuseError, match=r"uncommitted changes \(model.sql\).*git stash"):
        tagged(lake)
    git("checkout", "--quiet", "model.sql")
    Path("untracked.txt").write_text("x", encoding="utf-8")
    assert tagged(lake).git_tag == "vS-1"


def test_an_existing_tag_is_refused_before_versions_are_raised(
    lake: RecordedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("tag", "vV-2")
    monkeypatch.setenv("LUMOS_CLOUD_VERSION_PREFIX", "V-")
    with pytest.raises(MisuseError, match="The tag vV-2 exists already"):
        Lumos().version.update(auto_increment=True, create_git_tag=True)
    assert lake.lumos.version.show("clicks").cloud_version == "S-1"
    assert (
        Lumos().version.update(auto_increment=True, create_git_tag=True, tag_prefix="data/").git_tag
        == "data/V-2"
    )


def test_a_detached_head_needs_a_ref(lake: RecordedLake) -> None:
    git("checkout", "--quiet", "--detach")
    with pytest.raises(MisuseError, match=r"HEAD is detached.*--ref HEAD"):
        tagged(lake)
    assert tagged(lake, ref="HEAD").git_tag == "vS-1"


def test_an_earlier_commit_can_be_tagged(lake: RecordedLake) -> None:
    first = git("rev-parse", "HEAD")
    git("commit", "--quiet", "--allow-empty", "-m", "More")
    tagged(lake, ref=first)
    assert git("rev-parse", "vS-1^{commit}") == first
    with pytest.raises(LumosError, match="There is no revision 'nowhere'"):
        tagged(lake, ref="nowhere")


def test_a_missing_author_is_explained(lake: RecordedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_NAME", "")
    with pytest.raises(LumosError, match=r"The tag vS-1 was not created.*git config user.name"):
        tagged(lake)


@pytest.mark.parametrize("prefix", ["v ", "a..b", "-v", "x~"])
def test_an_invalid_name_is_refused(lake: RecordedLake, prefix: str) -> None:
    with pytest.raises(MisuseError, match="not a valid name of a git tag"):
        tagged(lake, tag_prefix=prefix)


def test_tags_that_others_made_are_ignored(lake: RecordedLake) -> None:
    git("tag", "-a", "v1.0", "-m", "A release")
    git("tag", "-a", "v2.0", "-m", "Versions of Lumos: edited by hand")
    assert tagged(lake).previous_tag is None


def test_nothing_to_do_is_an_error(lake: RecordedLake) -> None:
    with pytest.raises(MisuseError, match="Nothing to do"):
        lake.lumos.version.update()


def versions(**datasets: str) -> dict[str, DatasetVersions]:
    split = {name: text.split() for name, text in datasets.items()}
    return {
        name: DatasetVersions(cloud_version=cloud, schema_version=schema)
        for name, (cloud, schema) in split.items()
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"a": "S-3 1.1.0", "b": "S-9 4.0.0"}, "S-9 4.0.0", id="first run"),
        pytest.param({"a": "S-3 1.1.0"}, {"a": "S-3 1.1.0"}, None, id="nothing moved"),
        pytest.param({"a": "S-3 1.1.0"}, {"a": "S-12 1.1.0"}, "S-12 5.2.2", id="new data"),
        pytest.param({"a": "S-3 1.1.0"}, {"a": "S-4 1.1.1"}, "S-11 5.2.2", id="patch"),
        pytest.param({"a": "S-3 1.1.0"}, {"a": "S-4 1.2.0"}, "S-11 5.3.0", id="minor"),
        pytest.param({"a": "S-3 1.1.0"}, {"a": "S-4 2.0.0"}, "S-11 6.0.0", id="major"),
        pytest.param({"a": "S-3 1.1.0"}, {"a": "S-9 8.0.0"}, "S-11 8.0.0", id="several majors"),
        pytest.param({"a": "S-3 1.1.0"}, {}, "S-11 6.0.0", id="everything gone"),
    ],
)
def test_the_versions_of_a_run_only_rise(
    before: dict[str, str], after: dict[str, str], expected: str | None
) -> None:
    old, new = versions(**before), versions(**after)
    last = VersionTag("vS-10", CloudVersion(10), SchemaVersion(5, 2, 1), old) if before else None
    run = run_versions(changed_versions(old, new, {}), new, last, prefix="S-")
    assert (run and f"{run.cloud_version} {run.schema_version}") == expected
