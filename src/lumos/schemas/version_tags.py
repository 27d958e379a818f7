"""The versions of a run of `lumos version update`, and the git tags that record them.

The message of a tag lists all datasets with their versions. With it, the next run can find the
datasets that changed, even in another store or clone.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from lumos.errors import MisuseError
from lumos.model.version import CloudVersion, Level, SchemaVersion
from lumos.schemas.git_revisions import GitFailed, GitRepository
from lumos.schemas.reports import DatasetVersions, UpdatedVersion

_SUBJECT: Final = "Versions of Lumos:"
_FIELD_SEPARATOR: Final = "\x1f"
_RECORD_SEPARATOR: Final = "\x1e"
_LEVELS: Final[tuple[Level, ...]] = ("none", "patch", "minor", "major")


class VersionTag(NamedTuple):
    """A tag with the versions of its run, and the versions of all datasets at that time."""

    name: str
    cloud_version: CloudVersion
    schema_version: SchemaVersion
    datasets: Mapping[str, DatasetVersions]


class VersionTags:
    """The version tags of a repository whose names start with a prefix."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._repository = GitRepository(folder)
        self._prefix = prefix

    def last(self) -> VersionTag | None:
        """The tag with the highest cloud version; tags of other tools are ignored."""
        return max(self._read_tags(), key=lambda tag: tag.cloud_version.number, default=None)

    def target(self, ref: str | None) -> str:
        """The commit to tag: `ref`, or else HEAD.

        Raises an error if there are uncommitted changes, or if HEAD is detached and `ref` is not
        given.
        """
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
        """The name of a run's tag; raises an error if it is invalid or exists already."""
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
        # Unlike `contents`, `contents:body` does not include the signature of the tag.
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
    """Parse the message of a tag; None if it is invalid, for example edited manually."""
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


class RunVersions(NamedTuple):
    """The versions of a run, which cover all datasets."""

    cloud_version: CloudVersion
    schema_version: SchemaVersion


def changed_versions(
    before: Mapping[str, DatasetVersions],
    after: Mapping[str, DatasetVersions],
    names: Mapping[str, str],
) -> tuple[UpdatedVersion, ...]:
    """The datasets whose versions differ, including new and deleted datasets, sorted by URN."""
    return tuple(
        UpdatedVersion(
            urn=urn,
            name=names.get(urn, urn),
            before=before.get(urn),
            after=after.get(urn),
            level=_level(before.get(urn), after.get(urn)),
        )
        for urn in sorted(before.keys() | after.keys())
        if before.get(urn) != after.get(urn)
    )


def run_versions(
    changed: Iterable[UpdatedVersion],
    versions: Mapping[str, DatasetVersions],
    last: VersionTag | None,
    *,
    prefix: str,
) -> RunVersions | None:
    """The versions of a run; None if no version changed.

    The cloud version is the highest cloud version of all datasets, but at least the next one after
    the last run, so that it is different in each run. The schema version is raised by the largest
    level of the changes, and is at least the highest schema version of the changed datasets.
    """
    changed = tuple(changed)
    if not changed:
        return None
    numbers = [CloudVersion.parse(each.cloud_version).number for each in versions.values()]
    schemas = [
        SchemaVersion.parse(each.after.schema_version) for each in changed if each.after is not None
    ]
    if last is not None:
        numbers.append(last.cloud_version.number + 1)
        # If only data changed, the run is a patch, although no schema version changed.
        largest = max((each.level for each in changed), key=_LEVELS.index)
        schemas.append(last.schema_version.next("patch" if largest == "none" else largest))
    return RunVersions(
        CloudVersion(max(numbers, default=1), prefix), max(schemas, default=SchemaVersion())
    )


def _level(before: DatasetVersions | None, after: DatasetVersions | None) -> Level:
    """The level of the change between two versions: minor if new, major if deleted."""
    if after is None:
        return "major"
    if before is None:
        return "minor"
    old, new = (SchemaVersion.parse(each.schema_version) for each in (before, after))
    if old.major != new.major:
        return "major"
    if old.minor != new.minor:
        return "minor"
    return "patch" if old.patch != new.patch else "none"
