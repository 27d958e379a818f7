"""The files of `lumos gate init`: a workflow for the forge of a repository, and a policy."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, assert_never, get_args

from lumos.config.load import FILE_NAME
from lumos.config.settings import DocumentationRules
from lumos.errors import UnknownName

Forge: TypeAlias = Literal["github", "gitlab", "bitbucket", "jenkins"]
FORGES: Final[tuple[Forge, ...]] = get_args(Forge)
# The rules in templates/policy.yaml.
POLICY_RULES: Final = DocumentationRules(required_fields=("description", "owner"))


class Workflow(NamedTuple):
    """A file to write for a forge; `if_exists` says how to add the gate to an existing file."""

    path: str
    text: str
    if_exists: str = ""


_INCLUDE: Final = "include:\n  - local: .gitlab/lumos.yml\n"
# Files by which the forge of a repository is detected.
_FORGE_BY_FILE: Final[Mapping[str, Forge]] = {
    ".github/workflows": "github",
    ".gitlab-ci.yml": "gitlab",
    "bitbucket-pipelines.yml": "bitbucket",
    "Jenkinsfile": "jenkins",
}


def workflows(forge: Forge) -> tuple[Workflow, ...]:
    """The files that run the gate on a forge."""
    match forge:
        case "github":
            return (Workflow(".github/workflows/lumos.yml", _template("github.yml")),)
        case "gitlab":
            hint = "add to it: include: [{local: .gitlab/lumos.yml}]"
            return (
                Workflow(".gitlab/lumos.yml", _template("gitlab.yml")),
                Workflow(".gitlab-ci.yml", _INCLUDE, hint),
            )
        case "bitbucket":
            hint = "add to it: lumos gate --base origin/BRANCH"
            return (Workflow("bitbucket-pipelines.yml", _template("bitbucket.yml"), hint),)
        case "jenkins":
            hint = "add to it: sh 'lumos gate --base \"origin/$CHANGE_TARGET\"'"
            return (Workflow("Jenkinsfile", _template("Jenkinsfile"), hint),)
        case _ as unreachable:
            assert_never(unreachable)


def policy_file() -> Workflow:
    """The configuration file with the policy."""
    return Workflow(FILE_NAME, _template("policy.yaml"), "lumos doc check reads 'documentation'")


def _template(name: str) -> str:
    return files("lumos.gate").joinpath("templates", name).read_text(encoding="utf-8")


def parse_forge(name: str) -> Forge:
    """The forge with a name, in any case."""
    for forge in FORGES:
        if name.lower() == forge:
            return forge
    raise UnknownName("forge", name, FORGES)


def detect_forge(root: Path, remote: str) -> Forge | None:
    """The forge of a repository, from its CI files, else from the host of its remote."""
    for file, forge in _FORGE_BY_FILE.items():
        if (root / file).exists():
            return forge
    host = remote.partition("://")[2] or remote
    host = host.partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
    return next((forge for forge in FORGES if forge in host), None)
