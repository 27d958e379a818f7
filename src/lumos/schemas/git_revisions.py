"""Reads the schema files in a folder at two revisions of its git repository."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple

from lumos.errors import LumosError, MisuseError
from lumos.schemas.files import (
    SCHEMA_SUFFIX,
    DatasetSchema,
    UnreadableSchema,
    index_by_urn,
    name_of_file,
    read_schema,
    read_urn,
)

_REMOTE: Final = "origin"
_COMMIT_ID: Final = re.compile(r"[0-9a-f]{7,64}\Z", re.IGNORECASE)
_ACTIONS_HINT: Final = "(in GitHub Actions, check out with fetch-depth: 0)"
DEFAULT_FOLDER: Final = "schemas"
# Modes of tree entries in git.
_REGULAR_FILE_MODE: Final = "100"
_SUBMODULE_MODE: Final = "160000"


class GitFailed(LumosError):
    """A git command failed."""


class UnknownRevision(MisuseError):
    """The repository does not have the revision."""

    def __init__(self, revision: str, *, shallow: bool) -> None:
        self.revision = revision
        hint = (
            f"This clone is shallow. Fetch it with: {_fetch_command(revision)} {_ACTIONS_HINT}"
            if shallow
            else "Look for it with: git branch --all, or fetch it: "
            f"{_fetch_command(revision, deepen=False)}"
        )
        super().__init__(f"There is no revision '{revision}' in this repository. {hint}")


class RevisionSchemas(NamedTuple):
    """The datasets that differ, before and after the change, and remarks on skipped files."""

    before: dict[str, DatasetSchema]
    after: dict[str, DatasetSchema]
    remarks: tuple[str, ...]


class _ReadableSchemas(NamedTuple):
    """The datasets at a revision, the names and URNs of unreadable files, and remarks on these."""

    datasets: dict[str, DatasetSchema]
    unreadable: frozenset[str]
    remarks: tuple[str, ...]


class _TreeEntry(NamedTuple):
    """A file, symbolic link or submodule in a commit."""

    path: str
    mode: str
    blob: str
    size: int | None


class GitRepository:
    """The git repository of a folder."""

    def __init__(
        self, folder: Path, *, advice: str = "Run the command inside the repository."
    ) -> None:
        self._folder = folder
        self._listings: dict[str, list[_TreeEntry]] = {}
        result = self._run("rev-parse", "--is-inside-work-tree")
        if result.stdout.strip() != b"true":
            raise MisuseError(
                f"{folder} is not inside a readable git repository{_error_text(result)}. {advice}"
            )

    @property
    def root(self) -> Path:
        """The top folder of the repository."""
        return Path(self._top_folder())

    def is_ignored(self, file: Path) -> bool:
        """Whether git ignores an existing file."""
        rules = ("--others", "--ignored", "--exclude-standard")
        return bool(self.git("ls-files", *rules, "--", str(file)).strip())

    def default_branch(self) -> str | None:
        """The branch to merge into: the default branch of the remote, or else main or master."""
        remote = self.git("symbolic-ref", "--quiet", f"refs/remotes/{_REMOTE}/HEAD", check=False)
        names = [remote.strip().removeprefix("refs/remotes/")] if remote.strip() else []
        for name in (*names, f"{_REMOTE}/main", f"{_REMOTE}/master", "main", "master"):
            if self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False):
                return name
        return None

    def commit(self, revision: str) -> str:
        """The commit of a revision, which may be a branch that only the remote has."""
        # Git would interpret a name that starts with a dash as an option.
        if revision and not revision.startswith("-"):
            for name in (revision, f"{_REMOTE}/{revision}"):
                command = ("rev-parse", "--verify", "--quiet", "--end-of-options")
                commit_id = self._git(*command, f"{name}^{{commit}}", check=False).decode().strip()
                if commit_id:
                    return commit_id
        raise UnknownRevision(revision, shallow=self._is_shallow())

    def commits(self, base: str, head: str) -> tuple[str, str]:
        """The merge base of two revisions, and the commit of the second one."""
        new = self.commit(head)
        return self._merge_base(base, self.commit(base), head, new), new

    def files(
        self, tree: str, suffixes: tuple[str, ...], *, max_bytes: int | None = None
    ) -> dict[str, str]:
        """The regular files of a commit or tree with these suffixes, with their blob ids."""
        return {
            each.path: each.blob
            for each in self._listing(tree)
            # The mode excludes symbolic links and submodules.
            if each.path.lower().endswith(suffixes)
            and each.mode.startswith(_REGULAR_FILE_MODE)
            # In a partial clone, a missing object has no size.
            and (max_bytes is None or (each.size is not None and each.size <= max_bytes))
        }

    def read(self, files: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """The contents of files by their blob ids, in the order of their names."""
        names = sorted(files)
        contents = self._contents([files[name] for name in names]) if names else ()
        return zip(names, contents, strict=True)

    def submodules(self, commit: str) -> dict[str, str]:
        """The commits of the submodules of a commit, by path."""
        return {
            each.path: each.blob for each in self._listing(commit) if each.mode == _SUBMODULE_MODE
        }

    def path_of(self, file: Path) -> str | None:
        """The path of a file in the repository; None if it is elsewhere."""
        path = os.path.relpath(os.path.realpath(file), self._top_folder())
        return None if path.split(os.sep)[0] == os.pardir else PurePath(path).as_posix()

    def git(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> str:
        """The output of a git command; raises GitFailed if it fails and `check` is set."""
        return self._git(*arguments, stdin=stdin, check=check).decode("utf-8", "replace")

    def compare(self, base: str, head: str, *, folder: str | None) -> RevisionSchemas:
        """The datasets that differ between the merge base of two revisions and `head`.

        Files that did not change are not parsed. Files that cannot be read at the merge base are
        skipped with a remark, because the change may repair them.
        """
        old, new = self.commits(base, head)
        folder, before, after = self._find_folder(old, new, folder)
        if before is None and after is None:
            raise MisuseError(
                f"There is no folder {folder} at {base} or {head}. Name it with --dir, or write "
                f"one and commit it: lumos schema export {folder}"
            )
        before, after = before or {}, after or {}
        unchanged = dict(before.items() & after.items())
        if before.keys() == after.keys() == unchanged.keys():
            return RevisionSchemas({}, {}, ())
        unchanged_urns = {
            read_urn(data, default_name=name_of_file(PurePosixPath(name))): name
            for name, data in self.read(unchanged)
        }
        at_base = self._read_schemas(
            _drop_files(before, unchanged), unchanged_urns, location=f"{base}:{folder}"
        )
        location = f"{head}:{folder}"
        at_head = {
            name: read_schema(
                f"{location}/{name}", data, default_name=name_of_file(PurePosixPath(name))
            )
            for name, data in self.read(_drop_files(after, unchanged))
        }
        datasets = index_by_urn(
            ((f"{location}/{name}", each) for name, each in at_head.items()),
            others={urn: f"{location}/{name}" for urn, name in unchanged_urns.items()},
        )
        repaired = {at_head[name].urn for name in at_base.unreadable & at_head.keys()}
        for urn in repaired | at_base.unreadable:
            datasets.pop(urn, None)
        return RevisionSchemas(at_base.datasets, datasets, at_base.remarks)

    def _find_folder(
        self, old: str, new: str, folder: str | None
    ) -> tuple[str, dict[str, str] | None, dict[str, str] | None]:
        """The folder, and its schema files at both commits (None if it is missing there)."""
        at_root = os.path.join(self._top_folder(), DEFAULT_FOLDER)
        for name in (folder,) if folder is not None else (DEFAULT_FOLDER, at_root):
            before, after = self._schema_files(old, name), self._schema_files(new, name)
            if before is not None or after is not None:
                break
        return folder or DEFAULT_FOLDER, before, after

    def _merge_base(self, base: str, old: str, head: str, new: str) -> str:
        merge_base = self._git("merge-base", old, new, check=False).decode().strip()
        if merge_base:
            return merge_base
        hint = (
            f"This clone is shallow. Fetch its history with: {_fetch_command(base)} {_ACTIONS_HINT}"
            if self._is_shallow()
            else "Choose revisions of one history"
        )
        raise MisuseError(f"'{base}' and '{head}' have no commit in common. {hint}")

    def _is_shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository", check=False).strip() == b"true"

    def _schema_files(self, commit: str, folder: str) -> dict[str, str] | None:
        """The schema files of a folder with their blob ids; None if there is no such folder."""
        tree = commit
        if (path := self._path(folder)) != ".":
            entry = self._git("ls-tree", "-d", "-z", "--full-tree", commit, "--", path)
            if not entry:
                return None
            tree = entry.partition(b"\t")[0].split()[2].decode()
        return self.files(tree, (SCHEMA_SUFFIX,))

    def _listing(self, tree: str) -> list["_TreeEntry"]:
        """All entries in a tree; each tree is only listed once."""
        if tree not in self._listings:
            output = self._git("ls-tree", "-r", "-z", "--full-tree", "--long", tree)
            entries = []
            for entry in output.split(b"\0")[:-1]:
                metadata, _, name = entry.partition(b"\t")
                mode, _, blob, size = metadata.decode().split()
                size_in_bytes = int(size) if size.isdigit() else None
                entries.append(_TreeEntry(os.fsdecode(name), mode, blob, size_in_bytes))
            self._listings[tree] = entries
        return self._listings[tree]

    def _path(self, folder: str) -> str:
        """The path of a folder in the repository; `folder` may be a relative path."""
        absolute = os.path.abspath(os.path.join(self._folder, folder))
        for candidate in (absolute, os.path.realpath(absolute)):
            path = os.path.relpath(candidate, self._top_folder())
            if path.split(os.sep)[0] != os.pardir:
                return PurePath(path).as_posix()
        raise MisuseError(f"The folder {folder} is outside of the git repository.")

    def _top_folder(self) -> str:
        top = self._git("rev-parse", "--show-toplevel")
        return os.path.realpath(os.fsdecode(top).removesuffix("\n"))

    def _read_schemas(
        self, files: Mapping[str, str], urns_elsewhere: Mapping[str, str], *, location: str
    ) -> "_ReadableSchemas":
        """The datasets in the readable files; files that share a URN are treated as unreadable."""
        datasets: dict[str, DatasetSchema] = {}
        unreadable: set[str] = set()
        remarks: list[str] = []
        for name, data in self.read(files):
            file, default_name = f"{location}/{name}", name_of_file(PurePosixPath(name))
            try:
                dataset = read_schema(file, data, default_name=default_name)
            except UnreadableSchema as problem:
                unreadable |= {name, read_urn(data, default_name=default_name)}
                remarks.append(f"left out: {problem}")
                continue
            if dataset.urn in datasets or dataset.urn in urns_elsewhere:
                unreadable.add(dataset.urn)
                remarks.append(f"left out: {file}: {dataset.urn} is in another file as well.")
            datasets[dataset.urn] = dataset
        readable = {urn: each for urn, each in datasets.items() if urn not in unreadable}
        return _ReadableSchemas(readable, frozenset(unreadable), tuple(remarks))

    def _contents(self, ids: Iterable[str]) -> Iterator[bytes]:
        requested = "".join(f"{id}\n" for id in ids).encode()
        output = self._git("cat-file", "--batch", stdin=requested)
        position = 0
        while position < len(output):
            end = output.index(b"\n", position)
            header = output[position:end].split()
            if header[-1] == b"missing":
                raise GitFailed(
                    f"The repository lacks the object {header[0].decode()}. Check it: git fsck"
                )
            size = int(header[-1])
            yield output[end + 1 : end + 1 + size]
            position = end + size + 2

    def _git(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> bytes:
        result = self._run(*arguments, stdin=stdin)
        if check and result.returncode != 0:
            raise GitFailed(f"git {arguments[0]} failed{_error_text(result)}.")
        return result.stdout

    def _run(self, *arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "--literal-pathspecs", "-C", str(self._folder), *arguments]
        try:
            return subprocess.run(command, input=stdin, capture_output=True, check=False)
        except FileNotFoundError:
            raise GitFailed(
                "Comparing revisions needs the git command, which is not installed."
            ) from None


def _fetch_command(revision: str, *, deepen: bool = True) -> str:
    """The git command that fetches a revision; with `deepen`, also the entire history."""
    branch = revision.removeprefix(f"{_REMOTE}/").removeprefix("refs/heads/")
    is_commit = _COMMIT_ID.match(revision) is not None
    refs = branch if is_commit else f"+refs/heads/{branch}:refs/remotes/{_REMOTE}/{branch}"
    return shlex.join(["git", "fetch", *(["--unshallow"] if deepen else []), _REMOTE, refs])


def root_of(folder: Path) -> Path | None:
    """The top folder of the repository that contains a folder; None if there is none."""
    start = folder.resolve()
    return next((each for each in (start, *start.parents) if (each / ".git").exists()), None)


def _drop_files(files: Mapping[str, str], excluded: Mapping[str, str]) -> dict[str, str]:
    return {name: id for name, id in files.items() if name not in excluded}


def _error_text(result: "subprocess.CompletedProcess[bytes]") -> str:
    lines = result.stderr.decode(errors="replace").strip().splitlines()
    return f" ({lines[0].rstrip('.')})" if lines else ""
