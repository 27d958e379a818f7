"""The workflows for GitHub, GitLab, Bitbucket and pre-commit, run in a repository with a remote."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from lumos.gate.workflows import FORGES, workflows

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "integrations/github/action.yml"
EXAMPLE = ROOT / "integrations/github/example-workflow.yml"
USERS = "# urn: lumos://s3/lake/users\nuser_id STRING\nemail STRING\n"
BUILD = ROOT / "build/tools"
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Done(NamedTuple):
    """The end of a job: its exit code and what it printed."""

    code: int
    output: str


class Checkout:
    """A shallow clone of a branch, as CI systems make it, with `lumos` and a silent `pip`."""

    def __init__(self, folder: Path, breaks: bool) -> None:
        origin, self.folder, tools = folder / "origin", folder / "work", folder / "bin"
        self.temporary = folder / "runner"
        for each in (origin, tools, self.temporary):
            each.mkdir()
        self._write(origin, "schemas/users.schema", USERS)
        self._write(origin, "models/mails.sql", "-- owner: crm\nselect email from users\n")
        self._git(origin, "init", "-q", "-b", "main")
        self._commit(origin)
        self._git(origin, "checkout", "-q", "-b", "change")
        text = USERS.replace("email STRING\n", "") if breaks else USERS + "age INT64\n"
        self._write(origin, "schemas/users.schema", text)
        self._commit(origin)
        self._git(folder, "clone", "-q", "--depth=1", "--branch=change", origin.as_uri(), "work")
        self._write(tools, "lumos", f'#!/bin/sh\nexec "{sys.executable}" -m lumos "$@"\n')
        self._write(tools, "pip", f'#!/bin/sh\necho "$@" >> "{self.temporary}/installed"\n')
        self._write(tools, "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.variables = {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT / "src"),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            "GITHUB_OUTPUT": str(self.temporary / "outputs"),
        }

    def run(self, *scripts: str, **variables: str) -> Done:
        """Runs commands in one shell that stops at the first failure."""
        script = "\n".join(("set -eo pipefail", *scripts))
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.variables | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout + done.stderr)

    @property
    def outputs(self) -> dict[str, str]:
        lines = Path(self.variables["GITHUB_OUTPUT"]).read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def installed(self) -> str:
        return (self.temporary / "installed").read_text(encoding="utf-8")

    @staticmethod
    def _write(folder: Path, name: str, text: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    def _commit(self, folder: Path) -> None:
        self._git(folder, "add", "--all")
        self._git(folder, "commit", "-q", "-m", "change")

    @staticmethod
    def _git(folder: Path, *arguments: str) -> None:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture(params=[True, False], ids=["breaking", "compatible"])
def breaks(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def checkout(tmp_path: Path, breaks: bool) -> Checkout:
    return Checkout(tmp_path, breaks)


def loaded(text: str) -> Any:
    return yaml.safe_load(text)


def substituted(text: str, values: dict[str, str]) -> str:
    """A value of a workflow, with its expressions replaced."""
    return EXPRESSION.sub(lambda found: values[found.group(1)], text)


def run_steps(checkout: Checkout, steps: list[dict[str, Any]], values: dict[str, str]) -> Done:
    """The `run:` steps of a job, until one fails."""
    done = Done(0, "")
    for step in steps:
        if "run" in step and (step.get("if") != "inputs.package != ''" or values["inputs.package"]):
            assert not EXPRESSION.search(step["run"]), "expressions in scripts can be injected"
            environment = {
                name: substituted(str(text), values) for name, text in step.get("env", {}).items()
            }
            done = checkout.run(step["run"], **environment)
            if done.code != 0:
                break
    return done


def action_values(**given: str) -> dict[str, str]:
    inputs = loaded(ACTION.read_text(encoding="utf-8"))["inputs"]
    values = {f"inputs.{name}": str(each["default"]) for name, each in inputs.items()}
    values |= {f"inputs.{name.replace('_', '-')}": text for name, text in given.items()}
    base = values["inputs.base"] or "origin/main"
    return values | {
        "github.base_ref": "main",
        "inputs.base || format('origin/{0}', github.base_ref)": base,
    }


def test_the_action_fails_for_breaking_changes_only(checkout: Checkout, breaks: bool) -> None:
    steps = loaded(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    done = run_steps(checkout, steps, action_values(sarif="out/lumos.sarif", dialect="duckdb"))
    assert done.code == (10 if breaks else 0), done.output
    assert ("::error file=schemas/users.schema" in done.output) == breaks
    assert checkout.installed == "install --quiet lumos\n"
    assert checkout.outputs["verdict"] == ("breaking" if breaks else "passed")
    assert checkout.outputs["headline"].startswith("This changes 1 schema")
    assert json.loads(Path(checkout.outputs["report"]).read_text(encoding="utf-8"))["findings"]
    assert checkout.outputs["headline"].replace("This changes", "This PR changes") in Path(
        checkout.variables["GITHUB_STEP_SUMMARY"]
    ).read_text(encoding="utf-8")
    assert json.loads((checkout.folder / "out/lumos.sarif").read_text(encoding="utf-8"))["runs"]


@pytest.mark.parametrize("breaks", [True], indirect=True, ids=["breaking"])
def test_the_action_takes_options(checkout: Checkout) -> None:
    steps = loaded(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    done = run_steps(checkout, steps, action_values(warn_only="true", strict="true", package=""))
    assert done.code == 0, done.output
    assert not (checkout.temporary / "installed").exists()
    done = run_steps(checkout, steps, action_values(base="nowhere", config=""))
    assert (done.code, "There is no revision 'nowhere'" in done.output) == (2, True)


def test_the_example_passes_inputs_that_the_action_has() -> None:
    inputs = loaded(ACTION.read_text(encoding="utf-8"))["inputs"]
    (step,) = [
        each
        for each in loaded(EXAMPLE.read_text(encoding="utf-8"))["jobs"]["gate"]["steps"]
        if str(each.get("uses", "")).endswith("integrations/github")
    ]
    assert step["with"].keys() <= inputs.keys()


def test_the_workflow_for_github_runs(checkout: Checkout, breaks: bool) -> None:
    (workflow,) = workflows("github")
    checkout.run("git fetch -q --unshallow origin '+refs/heads/*:refs/remotes/origin/*'")
    steps = loaded(workflow.text)["jobs"]["gate"]["steps"]
    assert steps[0]["with"] == {"fetch-depth": 0}
    done = run_steps(checkout, steps, {"github.base_ref": "main"})
    assert done.code == (10 if breaks else 0), done.output
    assert (
        Path(checkout.variables["GITHUB_STEP_SUMMARY"])
        .read_text(encoding="utf-8")
        .startswith("**This PR changes")
    )


def test_the_job_for_gitlab_runs(checkout: Checkout, breaks: bool) -> None:
    job = loaded(workflows("gitlab")[0].text)["lumos-gate"]
    checkout.run("git fetch -q --unshallow origin")
    variables = {**job["variables"], "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    done = checkout.run(*job["before_script"], *job["script"], **variables)
    assert done.code == (10 if breaks else 0), done.output
    for file in job["artifacts"]["reports"].values():
        assert (checkout.folder / file).exists(), file


def test_the_step_for_bitbucket_runs(checkout: Checkout, breaks: bool) -> None:
    (workflow,) = workflows("bitbucket")
    step = loaded(workflow.text)["pipelines"]["pull-requests"]["**"][0]["step"]
    checkout.run("git fetch -q --unshallow origin")
    done = checkout.run(*step["script"], BITBUCKET_PR_DESTINATION_BRANCH="main")
    assert done.code == (10 if breaks else 0), done.output
    assert (checkout.folder / "test-results/lumos-gate.xml").exists()


def test_the_pipeline_for_jenkins_runs(checkout: Checkout, breaks: bool) -> None:
    (workflow,) = workflows("jenkins")
    checkout.run("git fetch -q --unshallow origin '+refs/heads/*:refs/remotes/origin/*'")
    commands = re.findall(r"sh '(.*)'", workflow.text)
    done = checkout.run(*commands, CHANGE_TARGET="main")
    assert done.code == (10 if breaks else 0), done.output


def test_the_template_for_gitlab_is_the_one_that_init_writes() -> None:
    template = (ROOT / "integrations/gitlab/lumos.yml").read_text(encoding="utf-8")
    assert template.partition("\n")[2] == workflows("gitlab")[0].text


@pytest.mark.parametrize("forge", FORGES)
def test_every_forge_has_a_workflow_with_full_history_or_says_so(forge: Any) -> None:
    text = workflows(forge)[0].text
    assert any(
        word in text for word in ("fetch-depth: 0", 'GIT_DEPTH: "0"', "depth: full", "full history")
    )


@pytest.fixture(scope="session")
def actionlint() -> Path:
    """actionlint, built by Go; skips without."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed.")
    file = BUILD / "actionlint"
    if not file.exists():
        environment = os.environ | {"GOBIN": str(BUILD)}
        done = subprocess.run(
            ["go", "install", ACTIONLINT],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"actionlint cannot be built: {done.stderr[-300:]}")
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [workflows("github")[0].text, EXAMPLE.read_text(encoding="utf-8")],
    ids=["init", "example"],
)
def test_workflows_pass_actionlint(actionlint: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").mkdir()
    file = tmp_path / ".github/workflows/lumos.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "integrations/github", tmp_path / "integrations/github")
    checked = subprocess.run(
        [actionlint, file], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
    file.write_text(
        text.replace("runs-on: ubuntu-latest", "runs-on: ${{ nothing }}"), encoding="utf-8"
    )
    assert (
        subprocess.run(
            [actionlint, file], cwd=tmp_path, capture_output=True, check=False
        ).returncode
        == 1
    )


@pytest.fixture(scope="session")
def pre_commit() -> Path:
    """The folder that pre-commit is installed in; skips without."""
    folder = BUILD / "pre-commit"
    if not folder.exists():
        scratch = folder.with_suffix(f".{os.getpid()}")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--target",
            scratch,
            "pre-commit>=4,<5",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"pre-commit cannot be installed: {done.stderr[-300:]}")
        scratch.rename(folder)
    return folder


@pytest.mark.slow
def test_the_pre_commit_hook_stops_a_push_that_breaks(
    checkout: Checkout, breaks: bool, tmp_path: Path, pre_commit: Path
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    checkout._git(hooks, "init", "-q")
    checkout._commit(hooks)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=hooks, check=True, capture_output=True, text=True
    )
    hook = {"id": "lumos-gate", "language": "system", "args": ["--base", "origin/main"]}
    config = {"repos": [{"repo": str(hooks), "rev": head.stdout.strip(), "hooks": [hook]}]}
    (checkout.folder / ".pre-commit-config.yaml").write_text(json.dumps(config), encoding="utf-8")
    checkout.run(
        "git fetch -q --unshallow origin '+refs/heads/*:refs/remotes/origin/*'; git add --all"
    )
    path = f"{ROOT / 'src'}{os.pathsep}{pre_commit}"
    done = checkout.run(
        "python -m pre_commit run --hook-stage pre-push --from-ref origin/main --to-ref HEAD -v",
        PYTHONPATH=path,
    )
    assert done.code == (1 if breaks else 0), done.output
    assert "This changes 1 schema" in done.output
    assert (
        checkout.run(
            "python -m pre_commit validate-manifest " + str(hooks / ".pre-commit-hooks.yaml"),
            PYTHONPATH=path,
        ).code
        == 0
    )
