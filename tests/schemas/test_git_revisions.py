"""Two git revisions of a folder of schemas."""

import subprocess
from pathlib import Path

import pytest

from lumos.errors import MisuseError
from lumos.model.schema import parse_schema
from lumos.schemas.export import export_schemas
from lumos.schemas.files import DatasetSchema, UnreadableSchema
from lumos.schemas.git_revisions import GitFailed, UnknownRevision
from lumos.schemas.reports import DiffReport, RevisionsReport
from lumos.schemas.service import Schemas


class Checkout:
    """A repository with a folder of schemas."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *words: str) -> str:
        identity = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        done = subprocess.run(
            ["git", *identity, *words], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, **schemas: str) -> str:
        """Exports the schemas under the version 1.0.0 and commits them; gives the commit."""
        export_schemas(
            [
                DatasetSchema(
                    urn=f"lumos://s3/lake/{name}", schema=parse_schema(text), version="1.0.0"
                )
                for name, text in schemas.items()
            ],
            self.folder / "schemas",
        )
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "schemas")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout(tmp_path / "repository")
    made.folder.mkdir()
    monkeypatch.chdir(made.folder)
    made.git("init", "--quiet", "--initial-branch", "main")
    return made


def diff(base: str, head: str = "HEAD", folder: str | None = "schemas") -> RevisionsReport:
    def no_store() -> None:
        raise AssertionError("revisions need no store")

    return Schemas(no_store).diff_revisions(base, head, folder=folder)  # type: ignore[arg-type]


def changed(report: DiffReport) -> dict[str, list[str]]:
    return {
        each.urn.rpartition("/")[2]: [row.rule for row in each.changes] for each in report.datasets
    }


def test_a_branch_is_compared_with_the_place_where_it_left(checkout: Checkout) -> None:
    checkout.commit(orders="id INT32", users="id INT64", gone="a DATE")
    checkout.git("switch", "--quiet", "--create", "feature")
    head = checkout.commit(orders="id INT64", users="id INT64", new="x UUID")
    checkout.git("switch", "--quiet", "main")
    checkout.commit(orders="id INT32", users="id STRING", gone="a DATE")
    for revision in ("feature", head, head[:8], "refs/heads/feature"):
        report = diff("main", revision)
        assert changed(report) == {
            "gone": ["dataset-removed"],
            "new": ["dataset-added"],
            "orders": ["integer-widened"],
        }
    orders = report.datasets[-1]
    assert (orders.from_version, orders.to_version) == ("1.0.0", "1.1.0")
    assert changed(diff("feature", "feature")) == {}


def test_formatting_and_comments_do_not_count(checkout: Checkout) -> None:
    checkout.commit(orders="id INT32")
    file = checkout.folder / "schemas/s3/lake/orders.schema"
    file.write_text(file.read_text().replace("id INT32", "# why\n\nid    int32"))
    checkout.git("commit", "--quiet", "--all", "--message", "tidy")
    assert diff("HEAD~1").datasets == ()


def test_branches_of_the_remote_are_known_by_their_names(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit(orders="id INT32")
    checkout.git("switch", "--quiet", "--create", "feature")
    checkout.commit(orders="id INT64")
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "--quiet", checkout.folder, clone], check=True, capture_output=True
    )
    monkeypatch.chdir(clone)
    assert changed(diff("main")) == {"orders": ["integer-widened"]}


def test_the_folder_may_be_named_from_where_one_stands(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit(orders="id INT32")
    checkout.commit(orders="id INT64")
    for folder in ("schemas/", "./schemas", ".", str(checkout.folder / "schemas")):
        assert changed(diff("HEAD~1", folder=folder)) == {"orders": ["integer-widened"]}
    monkeypatch.chdir(checkout.folder / "schemas/s3")
    for folder in ("lake", ".", "../../schemas"):
        assert changed(diff("HEAD~1", folder=folder)) == {"orders": ["integer-widened"]}
    with pytest.raises(MisuseError, match="is outside of the git repository"):
        diff("HEAD~1", folder="../../../schemas")


def test_a_folder_may_have_an_odd_name(checkout: Checkout) -> None:
    for type in ("INT32", "INT64"):
        for folder in ("-rf", "a..b", "..c", ":(glob)*"):
            (checkout.folder / folder).mkdir(exist_ok=True)
            (checkout.folder / folder / "orders.schema").write_text(f"id {type}\n")
        checkout.commit()
    for folder in ("-rf", "a..b", "..c", ":(glob)*"):
        assert changed(diff("HEAD~1", folder=folder)) == {"orders": ["integer-widened"]}


def test_a_folder_that_is_new_holds_new_datasets(checkout: Checkout) -> None:
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    checkout.commit(orders="id INT32")
    assert changed(diff("HEAD~1")) == {"orders": ["dataset-added"]}


def test_odd_names_of_files_are_no_problem(checkout: Checkout) -> None:
    folder = checkout.folder / "schemas"
    folder.mkdir()
    for name in ("-rf.schema", "new\nline.schema", "é \t.schema"):
        (folder / name).write_text("a INT32\n")
    (folder / "link.schema").symlink_to("/etc/passwd")
    checkout.commit()
    for name in ("-rf.schema", "new\nline.schema", "é \t.schema"):
        (folder / name).write_text("a INT64\n")
    (folder / "link.schema").unlink()
    checkout.commit()
    assert [each.urn for each in diff("HEAD~1").datasets] == [
        "lumos://schema/%C3%A9%20%09", "lumos://schema/-rf", "lumos://schema/new%0Aline",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "revision", ["nowhere", "--output=x", "-h", "", "HEAD:schemas", "a..b", "$(id)"]
)
def test_a_revision_that_does_not_exist_is_named(checkout: Checkout, revision: str) -> None:
    checkout.commit(orders="id INT32")
    for base, head in ((revision, "HEAD"), ("HEAD", revision)):
        with pytest.raises(UnknownRevision) as error:
            diff(base, head)
        assert f"There is no revision '{revision}' in this repository" in str(error.value)
    assert not (checkout.folder / "x").exists()


def test_a_shallow_clone_is_an_error_with_the_command_to_deepen_it(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit(orders="id INT32")
    checkout.git("switch", "--quiet", "--create", "feature")
    checkout.commit(orders="id INT64")
    clone = tmp_path / "clone"
    url = f"file://{checkout.folder}"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", url, clone], check=True, capture_output=True
    )
    monkeypatch.chdir(clone)
    with pytest.raises(UnknownRevision, match="fetch-depth: 0"):
        diff("main")
    subprocess.run(
        ["git", "fetch", "--quiet", "--depth", "1", url, "main:main"], check=True, cwd=clone
    )
    with pytest.raises(MisuseError, match=r"no commit in common.*fetch-depth: 0"):
        diff("main")


def test_histories_without_a_common_commit_cannot_be_compared(checkout: Checkout) -> None:
    checkout.commit(orders="id INT32")
    checkout.git("switch", "--quiet", "--orphan", "other")
    checkout.commit(orders="id INT64")
    with pytest.raises(MisuseError, match=r"'main' and 'HEAD' have no commit in common"):
        diff("main")


def test_a_folder_at_neither_revision_is_named(checkout: Checkout) -> None:
    checkout.commit(orders="id INT32")
    with pytest.raises(MisuseError, match="There is no folder contracts at HEAD or HEAD"):
        diff("HEAD", folder="contracts")
    with pytest.raises(MisuseError, match=r"There is no folder schemas/s3/lake/orders\.schema"):
        diff("HEAD", folder="schemas/s3/lake/orders.schema")


def test_a_broken_file_is_named_with_its_revision_and_place(checkout: Checkout) -> None:
    checkout.commit(orders="id INT32")
    file = checkout.folder / "schemas/s3/lake/orders.schema"
    file.write_text(f"{file.read_text()}b INTEGER\n")
    checkout.git("commit", "--quiet", "--all", "--message", "broken")
    with pytest.raises(UnreadableSchema, match=r"HEAD:schemas/s3/lake/orders\.schema:5:3: no"):
        diff("HEAD~1")


def test_without_a_repository_folders_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        MisuseError, match=r"not inside a readable git repository.*OLD_FOLDER NEW_FOLDER"
    ):
        diff("main")


def test_without_git_it_is_asked_for(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.commit(orders="id INT32")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GitFailed, match="needs the git command"):
        diff("HEAD")


HEADER = "# urn: lumos://s3/lake/orders\n"


def _write(checkout: Checkout, name: str, text: str) -> None:
    (checkout.folder / "schemas").mkdir(exist_ok=True)
    (checkout.folder / "schemas" / name).write_text(text)
    checkout.git("add", "--all")
    checkout.git("commit", "--quiet", "--message", name)


def test_a_second_file_of_a_dataset_is_refused_beside_one_that_did_not_change(
    checkout: Checkout,
) -> None:
    _write(checkout, "orders.schema", f"{HEADER}a INT64\nb INT64\n")
    _write(checkout, "orders_v2.schema", f"{HEADER}a INT64\n")
    with pytest.raises(UnreadableSchema, match=r"orders is also in HEAD:schemas/orders\.schema"):
        diff("HEAD~1")


def test_what_cannot_be_read_at_the_base_can_be_mended(checkout: Checkout) -> None:
    _write(checkout, "broken.schema", "a INT6\n")
    _write(checkout, "orders.schema", f"{HEADER}a INT64\nb INT64\n")
    _write(checkout, "broken.schema", "a INT64\n")
    _write(checkout, "orders.schema", f"{HEADER}a INT64\n")
    report = diff("HEAD~2")
    assert changed(report) == {"orders": ["field-removed"]}
    (remark,) = report.remarks
    assert "HEAD~2:schemas/broken.schema:1:3: no type named 'INT6'" in remark


def test_two_files_of_a_dataset_at_the_base_can_be_made_one(checkout: Checkout) -> None:
    _write(checkout, "orders.schema", f"{HEADER}a INT64\nb INT64\n")
    _write(checkout, "orders_v2.schema", f"{HEADER}a INT64\n")
    (checkout.folder / "schemas/orders_v2.schema").unlink()
    _write(checkout, "clicks.schema", "a INT64\n")
    report = diff("HEAD~1")
    assert changed(report) == {"clicks": ["dataset-added"]}
    assert "is in another file as well" in report.remarks[0]


def test_what_cannot_be_read_at_the_head_is_refused(checkout: Checkout) -> None:
    _write(checkout, "orders.schema", "a INT64\n")
    _write(checkout, "orders.schema", "a INT6\n")
    with pytest.raises(UnreadableSchema, match=r"HEAD:schemas/orders\.schema:1:3"):
        diff("HEAD~1")


def test_the_folder_may_be_named_through_its_repository(checkout: Checkout) -> None:
    checkout.commit(orders="a INT64")
    checkout.commit(orders="a STRING")
    assert changed(diff("HEAD~1", folder="../repository/schemas")) == {
        "orders": ["scalar-to-string"]
    }


def test_the_usual_folder_is_found_from_a_folder_below(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit(orders="a INT64")
    checkout.commit(orders="a STRING")
    (checkout.folder / "below").mkdir()
    monkeypatch.chdir(checkout.folder / "below")
    assert changed(diff("HEAD~1", folder=None)) == {"orders": ["scalar-to-string"]}
