"""lumos gate --comment and lumos schema comment: what is printed where, and the exit code."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gate.forge_servers import GitHubServer, answer
from http_server import BROKEN_OFF, Response

USERS = "# urn: lumos://s3/lake/users\nuser_id STRING\nemail STRING\n"


@pytest.fixture
def repository(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a branch that drops a column which a model reads."""
    folder = workplace / "repository"
    (folder / "models").mkdir(parents=True)
    monkeypatch.chdir(folder)

    def git(*words: str) -> None:
        identity = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    (folder / "users.schema").write_text(USERS)
    (folder / "models/mails.sql").write_text("-- owner: growth\nselect email from users\n")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "Models")
    git("switch", "-q", "-c", "feature")
    (folder / "users.schema").write_text(USERS.replace("email STRING\n", ""))
    git("commit", "-q", "-a", "-m", "Drop email")
    for name in ("GITHUB_REPOSITORY", "GITHUB_REF", "GITHUB_EVENT_PATH", "GITHUB_BASE_REF"):
        monkeypatch.delenv(name, raising=False)
    return folder


def use(server: GitHubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("repository")
def test_the_gate_comments_and_still_fails(lumos: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with GitHubServer() as server:
        use(server, monkeypatch)
        first = lumos("gate", "--base", "main", "--comment", "--json")
        assert (first.code, first.json["verdict"]) == (10, "breaking")
        assert "Created the comment on acme/shop 7: https://github.example/" in first.err
        assert "`users.email` was removed and breaks mails (growth)" in server.own[0]
        second = lumos("gate", "--base", "main", "--comment")
        assert "The comment is up to date on acme/shop 7" in second.err
        assert (second.code, len(server.own)) == (10, 1)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    "failure",
    [answer(401, {}), answer(403, {}), answer(404, {}), answer(422, {}), BROKEN_OFF],
    ids=["401", "403", "404", "422", "nothing"],
)
@pytest.mark.parametrize(
    ("options", "code"), [((), 10), (("--warn-only",), 0)], ids=["fails", "passes"]
)
def test_the_verdict_does_not_depend_on_the_forge(
    lumos: Any,
    monkeypatch: pytest.MonkeyPatch,
    failure: Response,
    options: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr("lumos.http.client.time", SimpleNamespace(sleep=lambda _: None))
    with GitHubServer(answer=lambda _: failure) as server:
        use(server, monkeypatch)
        done = lumos("gate", "--base", "main", "--comment", *options)
    assert done.code == code
    assert "problem  No comment on acme/shop#7: " in done.err
    assert done.out.startswith("This changes 1 schema, affecting 1 downstream dataset")


@pytest.mark.usefixtures("repository")
def test_schema_comment_posts_or_prints(lumos: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with GitHubServer() as server:
        use(server, monkeypatch)
        printed = lumos("schema", "comment", "--dry-run")
        assert printed.out.startswith("<!-- lumos gate -->\n\n**This PR changes 1 schema")
        assert server.requests == []
        posted = lumos("schema", "comment", "--pr", 7, "--json")
        assert (posted.code, posted.json["status"]) == (0, "created")
        assert server.own == [printed.out] == [posted.json["body"]]
        # There is no pull request 8.
        failed = lumos("schema", "comment", "--pr", 8)
        assert (failed.code, failed.out) == (0, "")
        assert "There is no such pull request" in failed.err


@pytest.mark.usefixtures("repository")
def test_a_dry_run_of_the_gate_prints_the_comment_only(lumos: Any) -> None:
    done = lumos("gate", "--base", "main", "--comment", "--dry-run")
    assert done.code == 10
    assert done.out.startswith("<!-- lumos gate -->")
    assert lumos("gate", "--base", "main", "--dry-run").code == 2


@pytest.mark.usefixtures("repository")
def test_several_outputs_are_written_at_once(lumos: Any, repository: Path) -> None:
    formats = ("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
    words = [word for name in formats for word in ("--output", f"{name}=out/gate.{name}")]
    done = lumos("gate", "--base", "main", *words)
    assert done.code == 10
    texts = {name: (repository / f"out/gate.{name}").read_text() for name in formats}
    assert all("users.email" in text for text in texts.values())
    assert texts["text"] == done.out
