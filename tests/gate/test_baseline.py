"""`lumos gate init`, the baseline, and `lumos doc check`."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from lumos import Lumos
from lumos.config import ConfigurationError, load
from lumos.errors import LumosError, MisuseError
from lumos.gate.baseline import FILE, parse_baseline, read_baseline
from lumos.gate.documentation import render_documentation
from lumos.gate.outputs import RENDERERS
from lumos.gate.workflows import FORGES, POLICY_RULES, detect_forge
from recorded_lake import RecordedLake

FILES = {
    "schemas/users.schema": "# urn: lumos://s3/lake/users\nuser_id STRING\nemail STRING\n",
    "models/mails.sql": "select email from users\n",
}
WITHOUT_EMAIL = "# urn: lumos://s3/lake/users\nuser_id STRING\n"
REQUIRED = "documentation: {required_fields: [description, owner], enforcement: {mode: block_on_missing}}\n"


def git(*arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    git("add", "--all", "--force", "--", ".", ":!.lumos/lumos.db*")
    git("commit", "-q", "-m", "change")


@pytest.fixture
def repository(workplace: Path) -> Path:
    git("init", "-q", "-b", "main")
    commit(FILES)
    git("checkout", "-q", "-b", "change")
    return workplace


def test_a_baseline_excuses_the_findings_of_the_change_that_introduces_the_gate(
    repository: Path,
) -> None:
    commit({"schemas/users.schema": WITHOUT_EMAIL})
    assert Lumos().gate.check("main").exit_code(strict=True, warn_only=False) == 10
    report = Lumos().gate.init(forge="github")
    assert (report.base, report.findings) == ("main", 1)
    assert [each.path for each in report.files] == [
        ".github/workflows/lumos.yml",
        "lumos.yaml",
        FILE,
    ]
    commit({})
    checked = Lumos().gate.check("main")
    assert checked.exit_code(strict=True, warn_only=False) == 0
    assert [each.waived_by for each in checked.findings] == ["the baseline"]

    commit(
        {
            "models/more.sql": "select user_id from users\n",
            "schemas/users.schema": "# urn: lumos://s3/lake/users\nname STRING\n",
        }
    )
    new = Lumos().gate.check("main")
    assert [each.path for each in new.findings if each.is_open and each.level == "error"] == [
        "user_id"
    ]
    assert (repository / FILE).exists()


@pytest.mark.usefixtures("repository")
def test_a_merged_baseline_is_used_up() -> None:
    commit({"schemas/users.schema": WITHOUT_EMAIL})
    Lumos().gate.init(forge="github")
    commit({})
    git("checkout", "-q", "main")
    git("merge", "-q", "change")
    commit(FILES)
    git("checkout", "-q", "-b", "again")
    commit({"schemas/users.schema": WITHOUT_EMAIL})
    assert Lumos().gate.check("main").exit_code(strict=True, warn_only=False) == 10


@pytest.mark.usefixtures("repository")
def test_a_change_cannot_extend_the_baseline_of_its_target() -> None:
    git("checkout", "-q", "main")
    Lumos().gate.init(forge="github")
    commit({})
    git("checkout", "-q", "-B", "change")
    commit({"schemas/users.schema": WITHOUT_EMAIL})
    (finding,) = [each for each in Lumos().gate.check("main").findings if each.level == "error"]
    commit({FILE: f"findings: ['{finding.fingerprint}']\n"})
    assert Lumos().gate.check("main").exit_code(strict=False, warn_only=False) == 10


@pytest.mark.parametrize("forge", FORGES)
def test_the_files_of_every_forge_run_the_gate_and_existing_ones_are_kept(
    repository: Path, forge: str
) -> None:
    first = Lumos().gate.init(forge=forge)
    assert all(each.written for each in first.files)
    texts = {
        each.path: (repository / each.path).read_text(encoding="utf-8") for each in first.files
    }
    assert any("lumos gate --base" in text for text in texts.values())
    for path, text in texts.items():
        if path.endswith(("yml", "yaml")):
            assert yaml.safe_load(text)
    (repository / "lumos.yaml").write_text("platform: local\n", encoding="utf-8")
    second = Lumos().gate.init(forge=forge)
    assert not any(each.written for each in second.files)
    assert (repository / "lumos.yaml").read_text(encoding="utf-8") == "platform: local\n"
    assert load(None, environment={}).documentation.required_fields == ()


def test_the_policy_is_valid_and_says_what_the_baseline_was_made_for(repository: Path) -> None:
    Lumos().gate.init(forge="github")
    assert load(repository / "lumos.yaml", environment={}).documentation == POLICY_RULES


@pytest.mark.parametrize(
    ("mark", "remote", "forge"),
    [
        pytest.param(None, "git@github.com:acme/shop.git", "github", id="github over ssh"),
        pytest.param(None, "https://gitlab.acme.com/shop.git", "gitlab", id="own gitlab"),
        pytest.param(None, "ssh://git@bitbucket.org:22/acme/shop", "bitbucket", id="bitbucket"),
        pytest.param(
            "Jenkinsfile", "git@github.com:acme/shop.git", "jenkins", id="jenkins on github"
        ),
        pytest.param(".gitlab-ci.yml", "", "gitlab", id="file without a remote"),
        pytest.param(None, "/srv/github/shop.git", None, id="path"),
        pytest.param(None, "", None, id="no remote"),
    ],
)
def test_the_forge_is_detected(
    tmp_path: Path, mark: str | None, remote: str, forge: str | None
) -> None:
    if mark:
        (tmp_path / mark).touch()
    assert detect_forge(tmp_path, remote) == forge


@pytest.mark.usefixtures("repository")
def test_an_unknown_forge_has_to_be_named() -> None:
    with pytest.raises(MisuseError, match="lumos gate init --forge github"):
        Lumos().gate.init()
    with pytest.raises(LumosError, match="svn"):
        Lumos().gate.init(forge="svn")


def test_an_ignored_baseline_is_named(repository: Path) -> None:
    (repository / ".gitignore").write_text(".lumos/\n", encoding="utf-8")
    assert Lumos().gate.init(forge="gitlab").ignored == (FILE,)


@pytest.mark.parametrize(
    "text", ["findings: [x]\n", "findings: 7\n", "others: []\n", "findings: ['0123456789abcdeg']\n"]
)
def test_an_invalid_baseline_is_an_error_with_its_file(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"baseline\.yaml:1"):
        parse_baseline(text)


def test_a_repository_without_a_baseline_has_an_empty_one(tmp_path: Path) -> None:
    assert read_baseline(tmp_path).findings == ()


@pytest.fixture
def store(repository: Path) -> RecordedLake:
    """Two datasets without documentation, which is required."""
    (repository / "lumos.yaml").write_text(REQUIRED, encoding="utf-8")
    lake = RecordedLake(Lumos())
    lake.see_all(["clicks", "orders"], "id INT64")
    return lake


def test_documentation_that_was_missing_before_does_not_block(store: RecordedLake) -> None:
    assert store.lumos.gate.documentation().blocks
    assert store.lumos.gate.init(forge="github").documentation == 4
    report = store.lumos.gate.documentation()
    assert (report.blocks, report.in_baseline, report.datasets) == (False, 2, ())
    store.see("users", "id INT64")
    report = store.lumos.gate.documentation()
    assert (report.blocks, [each.name for each in report.datasets]) == (True, ["users"])


def test_a_newly_required_field_is_not_in_the_baseline(
    store: RecordedLake, repository: Path
) -> None:
    store.lumos.gate.init(forge="github")
    more = REQUIRED.replace("owner]", "owner, sla]")
    (repository / "lumos.yaml").write_text(more, encoding="utf-8")
    report = Lumos().gate.documentation("orders")
    assert [each.missing for each in report.datasets] == [("sla",)]


def test_the_policy_of_init_has_its_baseline_too(store: RecordedLake, repository: Path) -> None:
    (repository / "lumos.yaml").unlink()
    assert store.store is not None
    assert Lumos().gate.init(forge="github").documentation == 4
    assert Lumos().gate.documentation().datasets == ()


@pytest.mark.parametrize("format", RENDERERS)
def test_missing_documentation_has_the_outputs_of_the_gate(
    store: RecordedLake, format: str
) -> None:
    text = render_documentation(store.lumos.gate.documentation(), format)
    assert "orders" in text
    match format:
        case "json":
            assert json.loads(text)["datasets"][0]["missing"] == ["description", "owner"]
        case "sarif":
            (result, _) = json.loads(text)["runs"][0]["results"]
            assert (result["ruleId"], result["level"]) == ("missing-documentation", "error")
        case "gitlab":
            first, second = json.loads(text)
            assert first["fingerprint"] != second["fingerprint"]
        case "junit":
            assert ElementTree.fromstring(text).attrib["failures"] == "2"
        case "github":
            assert text.startswith("::error file=lumos.yaml")
        case "markdown":
            assert "gate waive" not in text


@pytest.mark.usefixtures("repository")
def test_documentation_needs_a_store() -> None:
    Path("lumos.yaml").write_text(REQUIRED, encoding="utf-8")
    with pytest.raises(LumosError, match="lumos ingest"):
        Lumos().gate.documentation()
