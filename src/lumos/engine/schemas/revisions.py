"""The schema files of a folder at two revisions of its git repository."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from lumos.engine.schemas.files import ENDING, Described, by_urn, called, read
from lumos.errors import LumosError, MisuseError

_REMOTE: Final = "origin"


class GitFailed(LumosError):
    """Git did not do what it was asked."""


class UnknownRevision(MisuseError):
    """A revision that the repository does not have."""

    def __init__(self, revision: str, *, shallow: bool) -> None:
        self.revision = revision
        hint = (
            "This clone is shallow: in a workflow, check out with fetch-depth: 0"
            if shallow
            else f"Look for it with: git branch --all, or fetch it: git fetch {_REMOTE} {revision}"
        )
        super().__init__(f"There is no revision '{revision}' in this repository. {hint}")


class Repository:
    """The git repository that a folder lies in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        done = self._run("rev-parse", "--is-inside-work-tree")
        if done.stdout.strip() != b"true":
            raise MisuseError(
                f"{folder} is not inside a git repository that can be read"
                f"{_complaint(done)}. Compare two folders instead: "
                "lumos schema diff OLD_FOLDER NEW_FOLDER"
            )

    def compared(
        self, base: str, head: str, *, folder: str
    ) -> tuple[dict[str, Described], dict[str, Described]]:
        """The datasets that differ between the merge base of two revisions and the second one.

        Files that are the same on both sides are not even read.
        """
        new = self._commit(head)
        old = self._merge_base(base, self._commit(base), head, new)
        before, after = self._files(old, folder), self._files(new, folder)
        if before is None and after is None:
            raise MisuseError(
                f"There is no folder {folder} at {base} or {head}. Name it with --dir, or write "
                f"one and commit it: lumos schema export {folder}"
            )
        before, after = before or {}, after or {}
        alike = before.items() & after.items()
        return (
            self._described(dict(before.items() - alike), place=f"{base}:{folder}"),
            self._described(dict(after.items() - alike), place=f"{head}:{folder}"),
        )

    def _commit(self, revision: str) -> str:
        """The commit that a revision names, also where only the remote's branch is there."""
        # What begins with a dash would be an option to git, whatever is done about it.
        if revision and not revision.startswith("-"):
            for name in (revision, f"{_REMOTE}/{revision}"):
                words = ("rev-parse", "--verify", "--quiet", "--end-of-options")
                found = self._git(*words, f"{name}^{{commit}}", check=False).decode().strip()
                if found:
                    return found
        raise UnknownRevision(revision, shallow=self._is_shallow())

    def _merge_base(self, base: str, old: str, head: str, new: str) -> str:
        found = self._git("merge-base", old, new, check=False).decode().strip()
        if found:
            return found
        hint = (
            "This clone is shallow: in a workflow, check out with fetch-depth: 0"
            if self._is_shallow()
            else "Choose revisions of one history"
        )
        raise MisuseError(f"'{base}' and '{head}' have no commit in common. {hint}")

    def _is_shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository", check=False).strip() == b"true"

    def _files(self, commit: str, folder: str) -> dict[str, str] | None:
        """The schema files of a folder with the ids of their contents, or nothing without it."""
        tree = commit
        if (path := self._path(folder)) != ".":
            entry = self._git("ls-tree", "-d", "-z", "--full-tree", commit, "--", path)
            if not entry:
                return None
            tree = entry.partition(b"\t")[0].split()[2].decode()
        files = {}
        for entry in self._git("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
            facts, _, name = entry.partition(b"\t")
            path = os.fsdecode(name)
            # Links and submodules are no files of their own.
            if path.endswith(ENDING) and facts.startswith(b"100"):
                files[path] = facts.split()[2].decode()
        return files

    def _path(self, folder: str) -> str:
        """A folder's path in the repository; relative ones are seen from where one stands."""
        here = os.fsdecode(self._git("rev-parse", "--show-prefix")).rstrip("\n")
        inside = folder
        if os.path.isabs(folder):
            inside = os.path.relpath(os.path.realpath(folder), os.path.realpath(self._folder))
        path = os.path.normpath(os.path.join(here, inside))
        if path.split(os.sep)[0] == os.pardir:
            raise MisuseError(f"The folder {folder} lies outside of the git repository.")
        return PurePath(path).as_posix()

    def _described(self, files: Mapping[str, str], *, place: str) -> dict[str, Described]:
        """The datasets of some files; `place` is where complaints say that they lie."""
        names = sorted(files)
        contents = self._contents([files[name] for name in names]) if names else []
        return by_urn(
            (f"{place}/{name}", read(f"{place}/{name}", data, called=called(PurePosixPath(name))))
            for name, data in zip(names, contents, strict=True)
        )

    def _contents(self, ids: Iterable[str]) -> list[bytes]:
        asked = "".join(f"{id}\n" for id in ids).encode()
        answer = self._git("cat-file", "--batch", given=asked)
        contents = []
        at = 0
        while at < len(answer):
            end = answer.index(b"\n", at)
            facts = answer[at:end].split()
            if facts[-1] == b"missing":
                raise GitFailed(f"The repository lacks the object {facts[0].decode()}: git fsck.")
            size = int(facts[-1])
            contents.append(answer[end + 1 : end + 1 + size])
            at = end + size + 2
        return contents

    def _git(self, *words: str, given: bytes = b"", check: bool = True) -> bytes:
        done = self._run(*words, given=given)
        if check and done.returncode != 0:
            raise GitFailed(f"git {words[0]} failed{_complaint(done)}.")
        return done.stdout

    def _run(self, *words: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "--literal-pathspecs", "-C", str(self._folder), *words]
        try:
            return subprocess.run(command, input=given, capture_output=True, check=False)
        except FileNotFoundError:
            raise GitFailed(
                "Comparing revisions needs the git command, which is not installed."
            ) from None


def _complaint(done: "subprocess.CompletedProcess[bytes]") -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return f" ({lines[0].rstrip('.')})" if lines else ""
