"""Servers that follow the published REST contracts of forges for comments on pull requests.

GitHub: docs.github.com/rest/issues/comments, GitLab: docs.gitlab.com/api/notes, Bitbucket Cloud:
developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests.
"""

import json
from abc import abstractmethod
from typing import Any, ClassVar

from http_server import RecordingServer, Request, Response

TOKEN = "forge-token-1234567890"
OTHER = "somebody else"
OWN = "lumos"


def answer(status: int, value: Any = None, **headers: str) -> Response:
    """A response with JSON."""
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    body = b"" if value is None else json.dumps(value).encode()
    return Response(status, body, {"Content-Type": "application/json", **names})


class ForgeServer(RecordingServer):
    """The pull request 7 of acme/shop, with some comments as (author, text)."""

    kind: str
    variables: ClassVar[dict[str, str]]
    list_path: str
    page_parameter: str
    update_method: str
    max_length: int
    max_page = 100
    default_page: int

    def __init__(self, *comments: tuple[str, str], **options: Any) -> None:
        super().__init__(**options)
        self.comments = dict(enumerate(comments, start=101))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a job that builds the pull request."""
        return {name: text.replace("URL", self.url) for name, text in self.variables.items()}

    @property
    def own(self) -> list[str]:
        """The comments of the token's user."""
        return [text for author, text in self.comments.values() if author == OWN]

    def methods(self) -> list[str]:
        return [request.method for request in self.requests]

    @abstractmethod
    def is_authorized(self, headers: dict[str, str]) -> bool: ...
    @abstractmethod
    def row(self, id: int, author: str, text: str) -> dict[str, Any]: ...
    @abstractmethod
    def page(self, rows: list[Any], next: str | None) -> Response: ...
    @abstractmethod
    def comment_id(self, path: str) -> int | None: ...
    @abstractmethod
    def text(self, body: Any) -> str: ...
    @abstractmethod
    def too_long(self) -> Response: ...

    def respond(self, request: Request) -> Response:
        if not self.is_authorized(request.headers):
            return answer(401, {"message": "Bad credentials"})
        id = self.comment_id(request.path)
        if request.method == "GET" and request.path == self.list_path:
            return self._list(request)
        is_new = request.method == "POST" and request.path == self.list_path
        if not is_new and (request.method != self.update_method or id not in self.comments):
            return answer(404, {"message": "Not Found"})
        text = self.text(json.loads(request.body))
        if len(text) > self.max_length:
            return self.too_long()
        if is_new:
            id = max(self.comments, default=100) + 1
        elif self.comments[id or 0][0] != OWN:
            return answer(403, {"message": "Forbidden"})
        self.comments[id or 0] = (OWN, text)
        return answer(201 if is_new else 200, self.row(id or 0, OWN, text))

    def _list(self, request: Request) -> Response:
        size = min(int(request.query.get(self.page_parameter, self.default_page)), self.max_page)
        number = int(request.query.get("page", "1"))
        rows = [self.row(id, *each) for id, each in sorted(self.comments.items())]
        shown = rows[(number - 1) * size : number * size]
        following = None
        if number * size < len(rows):
            following = f"{self.url}{self.list_path}?{self.page_parameter}={size}&page={number + 1}"
        return self.page(shown, following)


class GitHubServer(ForgeServer):
    kind = "github"
    variables: ClassVar = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": "URL",
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_TOKEN": TOKEN,
    }
    list_path = "/repos/acme/shop/issues/7/comments"
    page_parameter = "per_page"
    update_method = "PATCH"
    max_length = 65_536
    default_page = 30

    def is_authorized(self, headers: dict[str, str]) -> bool:
        return headers.get("authorization") == f"Bearer {TOKEN}" and "user-agent" in headers

    def row(self, id: int, author: str, text: str) -> dict[str, Any]:
        kind = "Bot" if author == OWN else "User"
        url = f"https://github.example/acme/shop/pull/7#issuecomment-{id}"
        return {"id": id, "body": text, "html_url": url, "user": {"login": author, "type": kind}}

    def page(self, rows: list[Any], next: str | None) -> Response:
        links = {"Link": f'<{next}>; rel="next", <{self.url}/last>; rel="last"'} if next else {}
        return answer(200, rows, **links)

    def comment_id(self, path: str) -> int | None:
        start = "/repos/acme/shop/issues/comments/"
        return int(path.removeprefix(start)) if path.startswith(start) else None

    def text(self, body: Any) -> str:
        return str(body["body"])

    def too_long(self) -> Response:
        problem = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
        return answer(422, {"message": "Validation Failed", "errors": [problem]})


class GitLabServer(ForgeServer):
    kind = "gitlab"
    variables: ClassVar = {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": "URL/api/v4",
        "CI_PROJECT_PATH": "acme/shop",
        "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": TOKEN,
    }
    list_path = "/api/v4/projects/acme%2Fshop/merge_requests/7/notes"
    page_parameter = "per_page"
    update_method = "PUT"
    max_length = 1_000_000
    default_page = 20

    def is_authorized(self, headers: dict[str, str]) -> bool:
        return headers.get("private-token") == TOKEN

    def row(self, id: int, author: str, text: str) -> dict[str, Any]:
        return {"id": id, "body": text, "author": {"username": author}, "system": False}

    def page(self, rows: list[Any], next: str | None) -> Response:
        # GitLab behind a proxy gives the address that it knows itself by.
        links = (
            {"Link": f'<{next.replace(self.url, "http://gitlab.internal")}>; rel="next"'}
            if next
            else {}
        )
        return answer(200, rows, **links)

    def comment_id(self, path: str) -> int | None:
        start = f"{self.list_path}/"
        return int(path.removeprefix(start)) if path.startswith(start) else None

    def text(self, body: Any) -> str:
        return str(body["body"])

    def too_long(self) -> Response:
        return answer(400, {"message": {"note": ["is too long (maximum is 1000000 characters)"]}})


class BitbucketServer(ForgeServer):
    kind = "bitbucket"
    variables: ClassVar = {
        "BITBUCKET_BUILD_NUMBER": "1",
        "BITBUCKET_API_URL": "URL/2.0",
        "BITBUCKET_REPO_FULL_NAME": "acme/shop",
        "BITBUCKET_PR_ID": "7",
        "BITBUCKET_TOKEN": TOKEN,
    }
    list_path = "/2.0/repositories/acme/shop/pullrequests/7/comments"
    page_parameter = "pagelen"
    update_method = "PUT"
    max_length = 32_768
    default_page = 10

    def is_authorized(self, headers: dict[str, str]) -> bool:
        return headers.get("authorization") == f"Bearer {TOKEN}"

    def row(self, id: int, author: str, text: str) -> dict[str, Any]:
        link = {"html": {"href": f"https://bitbucket.example/acme/shop/pull-requests/7#{id}"}}
        content = {"raw": text, "markup": "markdown", "html": ""}
        user = {"display_name": author}
        return {"id": id, "content": content, "user": user, "deleted": False, "links": link}

    def page(self, rows: list[Any], next: str | None) -> Response:
        return answer(
            200, {"values": rows, "pagelen": len(rows), **({"next": next} if next else {})}
        )

    def comment_id(self, path: str) -> int | None:
        start = f"{self.list_path}/"
        return int(path.removeprefix(start)) if path.startswith(start) else None

    def text(self, body: Any) -> str:
        return str(body["content"]["raw"])

    def too_long(self) -> Response:
        return answer(400, {"type": "error", "error": {"message": "Comment is too long"}})


SERVERS = (GitHubServer, GitLabServer, BitbucketServer)
