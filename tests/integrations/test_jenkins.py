"""The steps of the shared library, run by JenkinsPipelineUnit with the real command line."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpora import jar

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "integrations/jenkins"
PAGE = ROOT / "docs/JENKINS_INTEGRATION.md"
# The Groovy of Jenkins, and what JenkinsPipelineUnit needs; groovy-cps is the interpreter of Jenkins.
JARS = (
    (
        "com.lesfurets",
        "jenkins-pipeline-unit",
        "1.1",
        "db8c05a36b4ba6d480ea1dd9acc40411789ee5541cbcb9fe8eb12e2764898f4f",
    ),
    (
        "org.codehaus.groovy",
        "groovy-all",
        "2.4.21",
        "de65260cf2070442e99882f2f3d72e7531725c1e6a257446cc0cea525c607bd0",
    ),
    (
        "com.cloudbees",
        "groovy-cps",
        "1.12",
        "f4886e833a1c0d1b73b1f45f4ea74a2d691def4e6562ec17d10598313d596e74",
    ),
    (
        "com.google.guava",
        "guava",
        "11.0.1",
        "aa7cef9d2ba0110a2db7be0fb6e679cd71f6a26fc3ba9da7715f41d3300def1d",
    ),
    (
        "commons-io",
        "commons-io",
        "2.5",
        "a10418348d234968600ccb1d988efcbbd08716e1d96936ccc1880e7d22513474",
    ),
    (
        "org.apache.ivy",
        "ivy",
        "2.4.0",
        "ce81cb234406b093b5b8de9f6f5b2a50ed0824d6a235891353e8d3e941a53970",
    ),
)
SCRIPTED = """
@Library('lumos') _
node {
    stage('Detect') {
        def changes = lumosDetectChanges(configPath: 'lumos.yaml', sources: ["lake"])
        echo "count ${changes.count} ${changes.changesDetected} new ${changes.newDatasets} breaking ${changes.breaking}"
    }
    stage('Version') {
        def info = lumosVersionUpdate(createGitTag: true, tagPrefix: 'v')
        echo "version ${info.cloudVersion} ${info.schemaVersion} ${info.gitTag} ${info.changesDetected} ${info.success}"
    }
}
"""
Run = Callable[[str], list[str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def class_path() -> str:
    if shutil.which("java") is None:
        pytest.skip("Java is not installed.")
    found = [
        jar(group, name, version, digest, classifier="") for group, name, version, digest in JARS
    ]
    return os.pathsep.join(map(str, found))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A detached checkout with a small lake, and `lumos` on the path."""
    folder = tmp_path / "work"
    (folder / "lake").mkdir(parents=True)
    (folder / "lake/orders.csv").write_text("id,amount\n1,2.5\n", encoding="utf-8")
    for name in ("lumos.yaml", "lumos-config.yaml"):
        (folder / name).write_text("sources: [{type: file, path: lake}]\n", encoding="utf-8")
    (folder / "Makefile").write_text("build deploy:\n\t@echo made $@\n", encoding="utf-8")
    (folder / ".gitignore").write_text(".lumos/\nlake/\n", encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "Pipeline")
    git(folder, "checkout", "-q", "--detach")
    return folder


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=jane", "-c", "user.email=jane@example.com", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def run(repository: Path, tmp_path: Path, class_path: str) -> Run:
    """Runs a pipeline and returns what it echoed."""
    shutil.copytree(LIBRARY, tmp_path / "libraries/lumos@main")
    command = tmp_path / "bin/lumos"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lumos "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{
            f"GIT_{who}_{what}": "jane@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    opened = [
        f"--add-opens=java.base/java.{name}=ALL-UNNAMED"
        for name in ("lang", "util", "lang.reflect")
    ]

    def pipeline(script: str) -> list[str]:
        file = tmp_path / "pipeline/Jenkinsfile"
        file.parent.mkdir(exist_ok=True)
        file.write_text(script, encoding="utf-8")
        started = [
            "java", *opened, "-cp", class_path, "groovy.ui.GroovyMain", ROOT / "tests/integrations/RunPipeline.groovy",
            tmp_path / "libraries", repository, file,
        ]  # fmt: skip
        done = subprocess.run(
            started, capture_output=True, text=True, check=False, timeout=300, env=environment
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [
            line.removeprefix("echo: ")
            for line in done.stdout.splitlines()
            if line.startswith("echo: ")
        ]

    return pipeline


def test_the_steps_return_what_the_founding_pipeline_reads(run: Run, repository: Path) -> None:
    assert run(SCRIPTED) == ["count 0 0 new 1 breaking 0", "version S-1 1.0.0 vS-1 1 true"]
    assert git(repository, "cat-file", "-t", "vS-1") == "tag"

    (repository / "lake/orders.csv").write_text("id,note\n1,x\n", encoding="utf-8")
    first, second = run(SCRIPTED)
    assert first == "count 2 2 new 0 breaking 1"
    assert second == "version S-2 2.0.0 vS-2 1 true"

    assert run(SCRIPTED) == ["count 0 0 new 0 breaking 0", "version S-2 2.0.0 null 0 true"]


def jenkinsfile() -> str:
    """The declarative pipeline of the page."""
    blocks = re.findall(r"```groovy\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if block.startswith("@Library")]
    assert isinstance(found, str)
    return found


def test_the_declarative_pipeline_of_the_page_runs(run: Run, repository: Path) -> None:
    assert run(jenkinsfile()) == [
        "Detected 0 schema changes",
        "Updated to version: S-1:1.0.0",
        "Created Git tag: vS-1",
        "Pipeline succeeded - metadata versions updated",
    ]
    assert git(repository, "tag", "--list") == "vS-1"


def test_changes_of_a_branch_can_fail_the_build(run: Run, repository: Path) -> None:
    schema = repository / "schemas/users.schema"
    schema.parent.mkdir()
    schema.write_text("# urn: lumos://s3/lake/users\nid STRING\nmail STRING\n", encoding="utf-8")
    (repository / "mails.sql").write_text("select mail from users\n", encoding="utf-8")
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", "Schemas")
    git(repository, "branch", "target")
    schema.write_text("# urn: lumos://s3/lake/users\nid STRING\n", encoding="utf-8")
    git(repository, "commit", "-q", "-a", "-m", "Drop a column")
    call = "lumosDetectChanges(base: 'target', failOnBreaking: {})"
    (text,) = run(
        f'node {{ def found = {call.format("false")}; echo "${{found.count}} ${{found.breaking}}" }}'
    )
    assert text == "1 1"
    with pytest.raises(AssertionError, match=r"Lumos found 1 breaking schema change\(s\)"):
        run(f"node {{ {call.format('true')} }}")


def test_arguments_are_quoted(run: Run, repository: Path) -> None:
    folder = repository / "it's $(touch pwned)"
    folder.mkdir()
    (folder / "a.csv").write_text("id\n1\n", encoding="utf-8")
    script = """node { def found = lumosDetectChanges(sources: ["it's \\$(touch pwned)"]); echo "${found.newDatasets}" }"""
    assert run(script) == ["1"]
    assert not (repository / "pwned").exists()
