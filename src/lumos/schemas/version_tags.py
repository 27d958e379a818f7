"""Annotated git tags that record the versions of all datasets at a commit.

The message of a tag lists every dataset with its versions, so that the next run finds the datasets
that changed, even in another store or clone.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from lumos.errors import MisuseError
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.git_revisions import GitFailed, GitRepository
from lumos.schemas.reports import DatasetVersions

_SUBJECT: Final = "Versions of Lumos:"
_FIELD_SEPARATOR: Final = "\x1f"
_RECORD_SEPARATOR: Final = "\x1e"


class VersionTag(NamedTuple):
    """A tag, the versions of its run, and those of all datasets at that time."""

    name: str
    cloud_version: CloudVersion
    schema_version: SchemaVersion
    datasets: Mapping[str, DatasetVersions]


class VersionTags:
    """The version tags of a repository that begin with a prefix."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._repository = GitRepository(folder)
        self._prefix = prefix

    def last(self) -> VersionTag | None:
        """The tag with the highest cloud version; tags of other tools are ignored."""
        return max(self._read_tags(), key=lambda tag: tag.cloud_version.number, default=None)

    def target(self, ref: str | None) -> str:
        """The commit to tag; fails for uncommitted changes or a detached HEAD without `ref`."""
        changed = self._repository.git("status", "--porcelain", "--untracked-files=no").split("\n")
        files = [line[3:] for line in changed if line]
        if files:
            listed = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
            raise MisuseError(
                f"The working tree has uncommitted changes ({listed}), which a tag would not "
                "include. Commit them or set them aside: git stash"
            )
        if ref is not None:
            return self._repository.commit(ref)
        if not self._repository.git("symbolic-ref", "--quiet", "HEAD", check=False).strip():
            raise MisuseError(
                "HEAD is detached, as in the checkouts of most CI systems. Name the commit to tag: "
                "lumos version update --create-git-tag --ref HEAD"
            )
        return self._repository.commit("HEAD")

    def check_name(self, version: CloudVersion) -> str:
        """The name of the tag of a run; fails if it is invalid or exists already."""
        name = f"{self._prefix}{version}"
        try:
            self._repository.git("check-ref-format", f"refs/tags/{name}")
        except GitFailed:
            raise MisuseError(
                f"'{name}' is not a valid name of a git tag. Choose another --tag-prefix or "
                "cloud_version_prefix."
            ) from None
        if name.startswith("-"):
            raise MisuseError(f"'{name}' is not a valid name of a git tag: it begins with a dash.")
        if self._repository.git("for-each-ref", f"refs/tags/{name}").strip():
            raise MisuseError(
                f"The tag {name} exists already. Delete it (git tag --delete {name}) or choose "
                "another prefix: --tag-prefix PREFIX"
            )
        return name

    def create(self, tag: VersionTag, commit: str) -> None:
        """Create the annotated tag."""
        lines = [f"{_SUBJECT} {tag.cloud_version} {tag.schema_version}", ""]
        lines += [
            f"{urn} {each.cloud_version} {each.schema_version}"
            for urn, each in sorted(tag.datasets.items())
        ]
        message = "\n".join(lines).encode() + b"\n"
        command = ("tag", "--annotate", "--cleanup=verbatim", "--file=-", "--", tag.name, commit)
        try:
            self._repository.git(*command, stdin=message)
        except GitFailed as problem:
            raise GitFailed(
                f"The tag {tag.name} was not created: {problem} A tag needs an author: git config "
                "user.name NAME; git config user.email ADDRESS"
            ) from None

    def _read_tags(self) -> Iterator[VersionTag]:
        # Unlike contents, contents:body does not include a signature.
        fields = ("%(refname:strip=2)", "%(contents:subject)", "%(contents:body)")
        output_format = _FIELD_SEPARATOR.join(fields) + _RECORD_SEPARATOR
        output = self._repository.git("for-each-ref", f"--format={output_format}", "refs/tags")
        for record in output.split(_RECORD_SEPARATOR)[:-1]:
            name, subject, body = record.lstrip("\n").split(_FIELD_SEPARATOR, 2)
            if name.startswith(self._prefix) and subject.startswith(_SUBJECT):
                tag = _parse_tag(name, subject, body)
                if tag is not None:
                    yield tag


def _parse_tag(name: str, subject: str, body: str) -> VersionTag | None:
    """Parse the message of a tag; None if it was written or edited manually."""
    datasets = {}
    try:
        cloud_version, schema_version = subject.removeprefix(_SUBJECT).split()
        for line in filter(None, body.split("\n")):
            urn, cloud, schema = line.rsplit(" ", 2)
            datasets[urn] = DatasetVersions(cloud_version=cloud, schema_version=schema)
        return VersionTag(
            name, CloudVersion.parse(cloud_version), SchemaVersion.parse(schema_version), datasets
        )
    except (ValueError, MisuseError):
        return None
