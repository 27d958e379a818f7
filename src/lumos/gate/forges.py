"""The REST APIs of GitHub, GitLab and Bitbucket for comments on pull requests."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

import msgspec

from lumos.config.secret import Secret
from lumos.errors import MisuseError, UnknownName
from lumos.gate.comment import CommentStyle
from lumos.http.client import HttpResponse

PAGE_SIZE: Final = 100
_MAX_EVENT_BYTES: Final = 10 * 1024 * 1024
_REPOSITORY: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_NEXT_LINK: Final = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')


class ForgeComment(NamedTuple):
    """A comment on a pull request."""

    id: int
    text: str
    url: str | None


class Forge(ABC):
    """The REST API of a forge for the comments of one pull request.

    The class attributes name the environment variables of its CI system, in order of preference.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    style: ClassVar[CommentStyle]
    # Error messages recommend the first variable.
    token_variables: ClassVar[tuple[str, ...]]
    repository_variables: ClassVar[tuple[str, ...]]
    number_variables: ClassVar[tuple[str, ...]]
    base_variables: ClassVar[tuple[str, ...]]
    api_variable: ClassVar[str]
    default_api: ClassVar[str]
    update_method: ClassVar[str] = "PUT"
    # Advice in error messages: how to give the token the permission that it needs.
    permission: ClassVar[str]

    def __init__(self, repository: str, number: int, *, api: str, token: Secret, key: str) -> None:
        self.repository = repository
        self.number = number
        self.api = api.rstrip("/")
        self.token = token
        # The environment variable of the token.
        self.token_key = key

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"

    @abstractmethod
    def comments_url(self) -> str:
        """The address of the comments, for GET and POST."""

    @abstractmethod
    def comment_url(self, id: int) -> str:
        """The address of one comment, for updates."""

    def first_page(self) -> str:
        """The address of the first page of comments."""
        return f"{self.comments_url()}?per_page={PAGE_SIZE}"

    def next_page(self, response: HttpResponse, _page: Any) -> str | None:
        """The address of the next page of comments, or None after the last one."""
        match = _NEXT_LINK.search(response.headers.get("link", ""))
        return None if match is None else match[1]

    def rows(self, page: Any) -> Any:
        """The comments of a page."""
        return page

    def headers(self) -> dict[str, str]:
        """The headers of all requests."""
        return {"Authorization": f"Bearer {self.token.reveal()}"}

    def body(self, text: str) -> dict[str, Any]:
        """The request body that creates or updates a comment."""
        return {"body": text}

    @abstractmethod
    def comment(self, row: Any) -> ForgeComment:
        """Parse a comment from a row of the API."""

    def is_candidate(self, _row: Any) -> bool:
        """Whether Lumos may have written a comment."""
        return True

    @classmethod
    def number_in(cls, environment: Mapping[str, str]) -> str | None:
        """The number of the pull request that the CI system builds."""
        return _first_set(environment, cls.number_variables)


class GitHub(Forge):
    """Comments of GitHub, which treats pull requests as issues."""

    kind = "github"
    title = "GitHub"
    style = CommentStyle(max_length=65_536)
    token_variables = ("GITHUB_TOKEN",)
    repository_variables = ("GITHUB_REPOSITORY",)
    number_variables = ("CHANGE_ID",)
    base_variables = ("GITHUB_BASE_REF",)
    api_variable = "GITHUB_API_URL"
    default_api = "https://api.github.com"
    update_method = "PATCH"
    permission = (
        "Give the job 'permissions: {pull-requests: write}'; pull requests of forks get a "
        "token that may only read"
    )

    def comments_url(self) -> str:
        return f"{self._repository_url}/issues/{self.number}/comments"

    def comment_url(self, id: int) -> str:
        return f"{self._repository_url}/issues/comments/{id}"

    @property
    def _repository_url(self) -> str:
        return f"{self.api}/repos/{quote(self.repository)}"

    def headers(self) -> dict[str, str]:
        return {
            **super().headers(),
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def comment(self, row: Any) -> ForgeComment:
        return ForgeComment(row["id"], row.get("body") or "", row.get("html_url"))

    def is_candidate(self, row: Any) -> bool:
        # The token of a workflow may edit all comments, so only those of bots are candidates.
        is_app = self.token.reveal().startswith("ghs_")
        return not is_app or (row.get("user") or {}).get("type") == "Bot"

    @classmethod
    def number_in(cls, environment: Mapping[str, str]) -> str | None:
        if match := re.fullmatch(r"refs/pull/(\d+)/\w+", environment.get("GITHUB_REF", "")):
            return match[1]
        number = _event_number(environment.get("GITHUB_EVENT_PATH"))
        return super().number_in(environment) if number is None else str(number)


class GitLab(Forge):
    """Notes of GitLab on merge requests."""

    kind = "gitlab"
    title = "GitLab"
    style = CommentStyle(max_length=1_000_000)
    token_variables = ("GITLAB_TOKEN", "CI_JOB_TOKEN")
    # A merge request from a fork belongs to the target project.
    repository_variables = ("CI_MERGE_REQUEST_PROJECT_PATH", "CI_PROJECT_PATH", "CI_PROJECT_ID")
    number_variables = ("CI_MERGE_REQUEST_IID", "CHANGE_ID")
    base_variables = ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME",)
    api_variable = "CI_API_V4_URL"
    default_api = "https://gitlab.com/api/v4"
    permission = (
        "Set GITLAB_TOKEN to a project access token with the scope 'api'; GitLab's CI_JOB_TOKEN "
        "may not write notes"
    )

    def __str__(self) -> str:
        return f"{self.repository}!{self.number}"

    def comments_url(self) -> str:
        project = quote(self.repository, safe="")
        return f"{self.api}/projects/{project}/merge_requests/{self.number}/notes"

    def comment_url(self, id: int) -> str:
        return f"{self.comments_url()}/{id}"

    def first_page(self) -> str:
        return f"{super().first_page()}&sort=asc&order_by=created_at"

    def headers(self) -> dict[str, str]:
        name = "JOB-TOKEN" if self.token_key == "CI_JOB_TOKEN" else "PRIVATE-TOKEN"
        return {name: self.token.reveal()}

    def comment(self, row: Any) -> ForgeComment:
        return ForgeComment(row["id"], row.get("body") or "", None)

    def is_candidate(self, row: Any) -> bool:
        return not row.get("system")


class Bitbucket(Forge):
    """Comments of Bitbucket Cloud, which render neither HTML nor Mermaid."""

    kind = "bitbucket"
    title = "Bitbucket"
    style = CommentStyle(marker="[//]: # (lumos gate)", max_length=32_768, has_html=False)
    token_variables = ("BITBUCKET_TOKEN",)
    repository_variables = ("BITBUCKET_REPO_FULL_NAME",)
    number_variables = ("BITBUCKET_PR_ID", "CHANGE_ID")
    base_variables = ("BITBUCKET_PR_DESTINATION_BRANCH",)
    api_variable = "BITBUCKET_API_URL"
    default_api = "https://api.bitbucket.org/2.0"
    permission = (
        "Set BITBUCKET_TOKEN to a repository access token with the permission 'Pull requests: "
        "write'"
    )

    def comments_url(self) -> str:
        name = quote(self.repository)
        return f"{self.api}/repositories/{name}/pullrequests/{self.number}/comments"

    def comment_url(self, id: int) -> str:
        return f"{self.comments_url()}/{id}"

    def first_page(self) -> str:
        return f"{self.comments_url()}?pagelen={PAGE_SIZE}"

    def next_page(self, _response: HttpResponse, page: Any) -> str | None:
        address = page.get("next")
        return address if isinstance(address, str) else None

    def rows(self, page: Any) -> Any:
        return page["values"]

    def body(self, text: str) -> dict[str, Any]:
        return {"content": {"raw": text}}

    def comment(self, row: Any) -> ForgeComment:
        text = (row.get("content") or {}).get("raw") or ""
        link = ((row.get("links") or {}).get("html") or {}).get("href")
        return ForgeComment(row["id"], text, link)

    def is_candidate(self, row: Any) -> bool:
        return not row.get("deleted")


FORGES: Final[Mapping[str, type[Forge]]] = {each.kind: each for each in (GitHub, GitLab, Bitbucket)}


def base_branch(environment: Mapping[str, str]) -> str:
    """The target branch of the pull request that the CI system builds, or else main."""
    variables = (name for kind in FORGES.values() for name in kind.base_variables)
    branch = _first_set(environment, (*variables, "CHANGE_TARGET"))
    return "main" if branch is None else f"origin/{branch}"


def find_forge(
    environment: Mapping[str, str],
    *,
    kind: str | None = None,
    repository: str | None = None,
    number: int | None = None,
) -> Forge:
    """The pull request that a CI system builds; arguments override environment variables."""
    forge = forge_class(environment, kind)
    repository_name = repository or _first_set(environment, forge.repository_variables)
    if repository_name is None or not _REPOSITORY.fullmatch(repository_name):
        problem = (
            "No repository is known"
            if repository_name is None
            else f"'{repository_name}' is not a repository"
        )
        raise MisuseError(f"{problem}. Give its name: --repository OWNER/NAME")
    number_text = forge.number_in(environment) if number is None else str(number)
    if number_text is None or not number_text.isdecimal() or int(number_text) < 1:
        problem = (
            "No pull request is known"
            if number_text is None
            else f"'{number_text}' is not a pull request"
        )
        raise MisuseError(f"{problem}. Give its number: --pr 12")
    key = next((key for key in forge.token_variables if environment.get(key)), None)
    if key is None:
        raise MisuseError(
            f"No token for {forge.title}: the environment variable {forge.token_variables[0]} is "
            "not set. To see the comment without posting it: --dry-run"
        )
    api = environment.get(forge.api_variable) or forge.default_api
    return forge(
        repository_name, int(number_text), api=api, token=Secret(environment[key].strip()), key=key
    )


def forge_class(environment: Mapping[str, str], kind: str | None) -> type[Forge]:
    """The forge of a kind, or else the forge whose CI system runs this process."""
    if kind is not None:
        if kind not in FORGES:
            raise UnknownName("forge", kind, FORGES)
        return FORGES[kind]
    for variables in ("repository_variables", "token_variables"):
        for forge in FORGES.values():
            if _first_set(environment, getattr(forge, variables)) is not None:
                return forge
    raise MisuseError(
        "This is not a job of GitHub Actions, GitLab or Bitbucket Pipelines. Name the pull "
        "request: --forge github --repository OWNER/NAME --pr 12"
    )


def _first_set(environment: Mapping[str, str], variables: tuple[str, ...]) -> str | None:
    return next((environment[name] for name in variables if environment.get(name)), None)


def _event_number(file: str | None) -> int | None:
    """The number of the pull request in the event that started a GitHub workflow."""
    if file is None:
        return None
    try:
        with Path(file).open("rb") as stream:
            event = msgspec.json.decode(stream.read(_MAX_EVENT_BYTES))
    except (OSError, msgspec.DecodeError):
        return None
    parts = (event.get("pull_request"), event) if isinstance(event, dict) else ()
    numbers = (part.get("number") for part in parts if isinstance(part, dict))
    return next((number for number in numbers if isinstance(number, int)), None)
