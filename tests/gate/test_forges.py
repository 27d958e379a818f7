"""The comment on servers that follow the contracts of forges: one comment, and never a wrong token."""

import json
import time
from pathlib import Path

import pytest

from gate.forge_servers import (
    OTHER,
    OWN,
    SERVERS,
    TOKEN,
    BitbucketServer,
    ForgeServer,
    GitHubServer,
    GitLabServer,
    answer,
)
from gate.gate_reports import finding, report
from http_server import BROKEN_OFF, Request, Response
from lumos.errors import MisuseError
from lumos.gate.forge_client import CommentFailed, ForgeClient, publish_comment
from lumos.gate.forges import FORGES, base_branch, find_forge
from lumos.gate.reports import CommentReport, GateReport
from lumos.http.client import TimeLimits
from lumos.http.retries import RetryPolicy

QUICK = RetryPolicy(tries=3, seconds=3, first_wait=0.01, max_wait=0.02)
BREAKING = report(finding())


def publish(server: ForgeServer, found: GateReport = BREAKING, **options: object) -> CommentReport:
    return publish_comment(found, server.environment, retries=QUICK, **options)  # type: ignore[arg-type]


@pytest.fixture(params=SERVERS, ids=[each.kind for each in SERVERS], name="kind")
def any_kind(request: pytest.FixtureRequest) -> type[ForgeServer]:
    found: type[ForgeServer] = request.param
    return found


def marker(kind: type[ForgeServer]) -> str:
    return FORGES[kind.kind].style.marker


def test_a_comment_is_created_once_and_then_updated(kind: type[ForgeServer]) -> None:
    with kind((OTHER, "Looks good")) as server:
        first = publish(server)
        assert (first.status, first.problem) == ("created", None)
        assert server.own == [first.body]
        assert (first.repository, first.pr, first.forge) == ("acme/shop", 7, kind.kind)
        second = publish(server, report(finding(), finding(2)))
        assert second.status == "updated"
        assert server.own == [second.body]
        assert publish(server, report(finding(), finding(2))).status == "unchanged"
        assert len(server.comments) == 2
        assert server.methods() == ["GET", "POST", "GET", kind.update_method, "GET"]


def test_the_comment_is_found_on_a_later_page(kind: type[ForgeServer]) -> None:
    others = [(OTHER, f"comment {number}") for number in range(250)]
    with kind(*others, (OWN, f"{marker(kind)}\n\nearlier")) as server:
        assert publish(server).status == "updated"
        assert len(server.comments) == 251
        assert server.methods() == ["GET", "GET", "GET", kind.update_method]


def test_comments_of_others_with_the_marker_stay(kind: type[ForgeServer]) -> None:
    texts = [f"{marker(kind)}\n\nforged", f"> {marker(kind)}\n\nquoted"]
    with kind(*((OTHER, text) for text in texts)) as server:
        assert publish(server).status == "created"
        assert [text for _, text in server.comments.values()][:2] == texts
        assert publish(server).status == "unchanged"


def test_a_workflow_of_github_does_not_try_to_edit_comments_of_people() -> None:
    with GitHubServer((OTHER, "<!-- lumos gate -->\n\nforged")) as server:
        app = "ghs_1234567890"
        server.is_authorized = lambda headers: headers["authorization"] == f"Bearer {app}"  # type: ignore[method-assign]
        environment = server.environment | {"GITHUB_TOKEN": app}
        assert publish_comment(BREAKING, environment, retries=QUICK).status == "created"
        assert server.methods() == ["GET", "POST"]


def test_without_news_there_is_no_new_comment_but_an_earlier_one_is_updated(
    kind: type[ForgeServer],
) -> None:
    with kind() as server:
        assert publish(server, report()).status == "skipped"
        assert server.comments == {}
        publish(server)
        assert publish(server, report()).status == "updated"
        assert len(server.own) == 1


def test_the_largest_change_fits(kind: type[ForgeServer]) -> None:
    many = report(*(finding(number, clause="x " * 140) for number in range(1, 3000)))
    with kind() as server:
        posted = publish(server, many)
        assert (posted.status, posted.problem) == ("created", None)
        assert "not shown" in server.own[0]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (answer(401, {"message": "Bad credentials"}), "is not valid"),
        (answer(403, {"message": "Resource not accessible by integration"}), "may not comment"),
        (answer(404, {"message": "Not Found"}), "There is no such pull request"),
        (answer(422, {"message": "Validation Failed"}), "answered 422 (Validation Failed)."),
        (answer(500, {"message": "Oops"}), "answered 500 (Oops). Run the job again later."),
        (answer(429, {}), "Its rate limit is reached."),
        (answer(200, "hello"), "did not answer as"),
        (Response(200, b"<html>"), "did not answer as"),
        (BROKEN_OFF, "does not answer"),
    ],
    ids=["401", "403", "404", "422", "500", "429", "other JSON", "HTML", "nothing"],
)
def test_a_refusal_is_a_sentence_and_not_an_exception(
    kind: type[ForgeServer], refusal: Response, words: str
) -> None:
    with kind(answer=lambda _: refusal) as server:
        posted = publish(server)
    assert posted.status == "failed"
    assert posted.problem is not None
    assert words in posted.problem
    assert posted.problem.startswith("No comment on acme/shop")
    assert TOKEN not in posted.problem


@pytest.mark.parametrize("forge", [each.kind for each in SERVERS])
def test_a_refusal_names_the_variable_and_the_permission(forge: str) -> None:
    (kind,) = (each for each in SERVERS if each.kind == forge)
    with kind(answer=lambda _: answer(403, {"message": "no"})) as server:
        problem = publish(server).problem or ""
    assert f"The token in {FORGES[forge].token_variables[0]} may not comment." in problem
    assert FORGES[forge].permission in problem


def test_nothing_listens() -> None:
    with GitHubServer() as server:
        environment = server.environment
    posted = publish_comment(BREAKING, environment, retries=QUICK)
    assert posted.status == "failed"
    assert "does not answer" in (posted.problem or "")


def test_a_server_that_never_answers_is_given_up(kind: type[ForgeServer]) -> None:
    with kind(latency=5) as server:
        forge = find_forge(server.environment)
        client = ForgeClient(forge, retries=QUICK, limits=TimeLimits(connect=1, read=0.1))
        start = time.monotonic()
        with pytest.raises(CommentFailed, match="does not answer"):
            client.publish("text")
        assert time.monotonic() - start < 3


def failing_once(method: str, failure: Response) -> "dict[str, object]":
    """Answer the first request of a method with a failure."""
    left = [failure]

    def reply(request: Request) -> Response | None:
        return left.pop() if left and request.method == method else None

    return {"answer": reply}


@pytest.mark.parametrize(
    "limit",
    [
        answer(403, {"message": "secondary rate limit"}, Retry_After="0"),
        answer(429, {"message": "rate limit"}, Retry_After="0"),
        answer(403, {}, X_RateLimit_Remaining="0", X_RateLimit_Reset="1"),
        answer(503, {}),
    ],
    ids=["403", "429", "used up", "503"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_rate_limit_is_waited_for(kind: type[ForgeServer], method: str, limit: Response) -> None:
    with kind(**failing_once(method, limit)) as server:
        assert publish(server).status == "created"
        assert len(server.comments) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_retry_after_is_respected(method: str) -> None:
    limit = answer(403, {"message": "secondary rate limit"}, Retry_After="1")
    with GitHubServer(**failing_once(method, limit)) as server:
        start = time.monotonic()
        assert publish(server).status == "created"
        assert time.monotonic() - start >= 1


def test_a_rate_limit_longer_than_the_patience_fails_at_once() -> None:
    with GitHubServer(answer=lambda _: answer(403, {}, Retry_After="3600")) as server:
        assert "Its rate limit is reached." in (publish(server).problem or "")
        assert len(server.requests) == 1


def test_a_lost_answer_to_a_new_comment_leads_to_no_second_one(kind: type[ForgeServer]) -> None:
    lost = []

    def reply(request: Request) -> Response | None:
        if request.method == "POST" and not lost:
            lost.append(server.respond(request))
            return BROKEN_OFF
        return None

    with kind(answer=reply) as server:
        assert publish(server).status == "unchanged"
        assert len(server.comments) == 1


def test_a_renamed_repository_is_followed() -> None:
    def reply(request: Request) -> Response | None:
        if "/acme/old/" not in request.path:
            return None
        return Response(307, headers={"Location": request.target.replace("/old/", "/shop/")})

    with GitHubServer(answer=reply) as server:
        assert publish(server, repository="acme/old").status == "created"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_token_never_goes_to_another_host(kind: type[ForgeServer], status: int) -> None:
    with kind() as other:
        place = {"Location": f"{other.url}{kind.list_path}"}
        with kind(answer=lambda _: Response(status, headers=place)) as server:
            posted = publish(server)
        assert posted.status == "failed"
        assert "redirects to another host" in (posted.problem or "")
        assert other.requests == []


@pytest.mark.parametrize("server_kind", [GitHubServer, BitbucketServer])
def test_the_next_page_is_requested_at_the_configured_host(server_kind: type[ForgeServer]) -> None:
    with server_kind() as other, server_kind(*[(OTHER, "x")] * 150) as server:
        page = server.page

        def elsewhere(rows: list[object], next: str | None) -> Response:
            return page(rows, None if next is None else next.replace(server.url, other.url))

        server.page = elsewhere  # type: ignore[method-assign]
        assert publish(server).status == "created"
        assert other.requests == []
        assert server.methods() == ["GET", "GET", "POST"]


def test_endless_pages_end() -> None:
    def reply(request: Request) -> Response:
        return answer(200, [], Link=f'<{request.target}>; rel="next"')

    with GitHubServer(answer=reply) as server:
        assert "more than 10,000 comments" in (publish(server).problem or "")
        assert len(server.requests) == 100


def test_the_job_token_of_gitlab_has_its_own_header() -> None:
    with GitLabServer() as server:
        environment = server.environment | {"CI_JOB_TOKEN": "job-token-123"}
        del environment["GITLAB_TOKEN"]
        problem = publish_comment(BREAKING, environment, retries=QUICK).problem or ""
        assert server.requests[0].headers["job-token"] == "job-token-123"
    assert "The token in CI_JOB_TOKEN is not valid." in problem
    assert "project access token" in problem


def test_no_secret_reaches_the_comment(kind: type[ForgeServer]) -> None:
    secret = "s3cr3t-value-of-the-job"
    leaking = report(finding(message=f"reads {secret} and {TOKEN}", clause=f"x = {TOKEN}"))
    with kind() as server:
        environment = server.environment | {"WAREHOUSE_PASSWORD": secret}
        posted = publish_comment(leaking, environment, retries=QUICK)
        assert posted.status == "created"
        assert secret not in server.own[0]
        assert TOKEN not in server.own[0]
        dry = publish_comment(leaking, environment, dry_run=True)
        assert TOKEN not in dry.body
        assert (dry.status, len(server.comments)) == ("printed", 1)
        assert TOKEN not in repr(vars(find_forge(environment)))


def test_the_number_comes_from_the_event_of_github(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}, "number": 7}))
    with GitHubServer() as server:
        environment = server.environment | {
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_EVENT_PATH": str(event),
        }
        assert publish_comment(BREAKING, environment, retries=QUICK).status == "created"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"number": "7"}', '{"pull_request": 1}'])
def test_an_unusable_event_is_no_number(tmp_path: Path, text: str) -> None:
    event = tmp_path / "event.json"
    event.write_text(text)
    environment = GitHubServer.variables | {"GITHUB_REF": "", "GITHUB_EVENT_PATH": str(event)}
    with pytest.raises(MisuseError, match="No pull request is known"):
        find_forge(environment)


@pytest.mark.parametrize(
    ("environment", "options", "words"),
    [
        ({}, {}, "This is not a job of"),
        ({}, {"kind": "gitea"}, "No forge named 'gitea'"),
        ({"GITHUB_TOKEN": "x"}, {}, "No repository is known"),
        ({"GITHUB_TOKEN": "x"}, {"repository": "a/b?x"}, "is not a repository"),
        ({"GITHUB_TOKEN": "x"}, {"repository": "a/b"}, "No pull request is known"),
        ({"GITHUB_TOKEN": "x"}, {"repository": "a/b", "number": 0}, "'0' is not a pull request"),
        ({"GITHUB_REPOSITORY": "a/b"}, {"number": 1}, "GITHUB_TOKEN is not set"),
    ],
)
def test_what_is_missing_is_said_with_the_option(
    environment: dict[str, str], options: dict[str, object], words: str
) -> None:
    with pytest.raises(MisuseError, match=words.replace("?", r"\?")):
        find_forge(environment, **options)  # type: ignore[arg-type]
    assert publish_comment(BREAKING, environment, **options).status == "failed"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environment", "branch"),
    [
        ({}, "main"),
        ({"GITHUB_BASE_REF": "develop"}, "origin/develop"),
        ({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "trunk"}, "origin/trunk"),
        ({"BITBUCKET_PR_DESTINATION_BRANCH": "next"}, "origin/next"),
        ({"CHANGE_TARGET": "stable"}, "origin/stable"),
    ],
)
def test_the_base_is_the_branch_that_the_job_merges_into(
    environment: dict[str, str], branch: str
) -> None:
    assert base_branch(environment) == branch
