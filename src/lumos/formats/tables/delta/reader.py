"""Delta tables, by their log alone: the newest checkpoint, and the commits after it."""

import hashlib
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

import msgspec

from lumos.formats.interface import Remark, UnreadableFile
from lumos.formats.tables.delta.actions import (
    CommitInfo,
    Damaged,
    Metadata,
    actions_of,
    commit_info,
    schema_actions_of,
)
from lumos.formats.tables.delta.checkpoints import load
from lumos.formats.tables.delta.facts import facts_of, live_of
from lumos.formats.tables.delta.log import FOLDER, Log, in_log, is_of_log, log_of
from lumos.formats.tables.delta.state import (
    Memory,
    State,
    Told,
    microseconds,
    only_changes,
    packed,
    told_of,
    unpacked,
)
from lumos.formats.tables.interface import Folder, Kind, LiveFile, TableFacts, TableReader

_BROKEN: Final = "broken_table"
_HALF_WRITTEN: Final = "half_written_table"


class DeltaReader(TableReader):
    kind: ClassVar[Kind] = "delta"
    title: ClassVar[str] = "Delta Lake"

    def signature(self, folder: Folder) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for entry in folder.entries(FOLDER):
            if is_of_log(entry.name):
                digest.update(repr(tuple(entry)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def read(
        self, folder: Folder, memory: bytes | None, *, most_commits: int
    ) -> tuple[TableFacts, bytes]:
        log = log_of(folder.entries(FOLDER))
        if log.latest is None:
            raise _no_commit()
        known = unpacked(memory)
        reading = _Reading(folder, log)
        try:
            if known is not None and reading.goes_on_from(known):
                now = reading.later(known)
            else:
                now = reading.whole(known, most_commits)
            facts = facts_of(now, reading.remarks())
        except Damaged as problem:
            raise UnreadableFile(_BROKEN, f"The Delta log is broken: {problem}.") from None
        return facts, memory if memory is not None and now is known else packed(now)

    def live(self, memory: bytes) -> Iterator[LiveFile]:
        known = unpacked(memory)
        if known is None:
            raise ValueError("This memory was not left by a reading of a Delta table.")
        return live_of(known)


def _no_commit() -> UnreadableFile:
    return UnreadableFile(_HALF_WRITTEN, "The Delta log holds no commit yet.")


class _Commit(NamedTuple):
    """A file to be read: a commit, or a compacted run of them that ends with `version`."""

    version: int
    path: str
    modified: int
    is_run: bool = False


class _Missing(Exception):
    """A version that neither a commit nor a run tells of."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


class _Reading:
    """One reading of one log."""

    def __init__(self, folder: Folder, log: Log) -> None:
        assert log.latest is not None
        self._folder = folder
        self._log = log
        self._latest = log.latest
        self._told: list[Told] = []
        self._unread: list[int] = []
        # Checkpoints that could not be used, and why.
        self._damaged: dict[int, str] = {}
        self._blank = list(log.begun)
        # Of the newest commit that was read.
        self._last = CommitInfo()

    def goes_on_from(self, known: Memory) -> bool:
        """Whether the log begins with what is known of it, so that only the rest is to be read."""
        if known.last is None or self._log.identity(known.version) != known.last:
            return False
        return self._missing(after=known.version) is None

    def later(self, known: Memory) -> Memory:
        """The state after the commits that came since."""
        state = State.of(self._folder, known)
        there = {checkpoint.version for checkpoint in self._log.checkpoints}
        self._damaged = {at: why for at, why in known.damaged.items() if at in there}
        new = self._steps(known.version)
        if not new:
            return known
        self._told, self._unread = list(known.told), list(known.unread)
        version, modified = self._replay(state, new, base=known.version)
        if version == known.version:
            return known
        return self._memory(state, version, modified)

    def whole(self, known: Memory | None, most_commits: int) -> Memory:
        """The state after everything that is in the log."""
        base, modified, state = self._base()
        commits = self._to_read(base, most_commits)
        first = min((commit.version for commit in commits), default=base + 1)
        version, modified = self._replay(state, commits, base=base, modified=modified)
        if version < 0:
            raise _no_commit()
        if first > 0:
            self._told += self._before(first, base, state, known)
        return self._memory(state, version, modified)

    def _memory(self, state: State, version: int, modified: int) -> Memory:
        return state.memory(
            version=version,
            last=self._log.identity(version),
            at=microseconds(self._last, modified),
            operation=self._last.operation,
            told=only_changes(self._told),
            unread=self._unread,
            damaged=self._damaged,
        )

    def _missing(self, after: int) -> int | None:
        """The first version behind `after` that nothing tells of."""
        try:
            self._steps(after)
        except _Missing as gap:
            return gap.version
        return None

    def _steps(self, after: int, *, sparing: int = 0) -> list[_Commit]:
        """The way from a version to the latest; runs serve for gaps, and before `sparing`."""
        steps = []
        version = after + 1
        while version <= self._latest:
            run = None
            if version not in self._log.commits or version < sparing:
                run = self._run_over(version)
            if run is None and version not in self._log.commits:
                raise _Missing(version)
            steps.append(run or self._commit(version))
            version = steps[-1].version + 1
        return steps

    def _commit(self, version: int) -> _Commit:
        entry = self._log.commits[version]
        return _Commit(version, in_log(entry.name), entry.modified)

    def _run_over(self, version: int) -> _Commit | None:
        # One that begins earlier will do: it tells how every file it knows of ended up.
        runs = [run for run in self._log.runs if run.first <= version <= run.last <= self._latest]
        if not runs:
            return None
        longest = max(runs, key=lambda run: run.last)
        return _Commit(longest.last, in_log(longest.entry.name), longest.entry.modified, True)

    def _base(self) -> tuple[int, int, State]:
        """The newest checkpoint that can be read, or the beginning; its version and time."""
        for checkpoint in self._log.checkpoints:
            missing = self._missing(after=checkpoint.version)
            if missing is not None:
                raise Damaged(f"commit {missing} is missing, but there are later ones")
            state = State(self._folder)
            try:
                load(self._folder, checkpoint, state)
            except Damaged as problem:
                self._damaged[checkpoint.version] = str(problem)
                continue
            return checkpoint.version, checkpoint.modified, state
        missing = self._missing(after=-1)
        if missing is None:
            return -1, 0, State(self._folder)
        if self._damaged:
            version, why = next(iter(self._damaged.items()))
            raise Damaged(f"checkpoint {version}: {why}; and commit {missing} is gone")
        if missing == 0:
            raise Damaged("its first commit is gone, and there is no checkpoint")
        raise Damaged(f"commit {missing} is missing, but there are later ones")

    def _to_read(self, base: int, most_commits: int) -> list[_Commit]:
        """All that the state needs, and for history no more than the last `most_commits`."""
        history = sorted(self._log.commits)[-most_commits:] if most_commits > 0 else []
        commits = [self._commit(version) for version in history if version <= base]
        oldest = history[0] if history else self._latest + 1
        return commits + self._steps(base, sparing=oldest)

    def _replay(
        self, state: State, commits: list[_Commit], *, base: int, modified: int = 0
    ) -> tuple[int, int]:
        """Reads the commits into the state and the history; gives the version and its time."""
        version = base
        contents = self._folder.read_many([commit.path for commit in commits])
        for commit, data in zip(commits, contents, strict=True):
            if commit.version <= base:
                self._remember(commit, data, is_newest=commit.version == base)
                modified = commit.modified if commit.version == base else modified
                continue
            if isinstance(data, OSError):
                raise data
            if not data.strip():
                self._blank.append(commit.version)
                continue
            try:
                self._apply(state, commit, data)
            except Damaged as problem:
                raise Damaged(f"commit {commit.version}: {problem}") from None
            version, modified = commit.version, commit.modified
        # In between, a commit without a line is one that changed nothing.
        self._blank = [each for each in self._blank if each > version]
        return version, modified

    def _apply(self, state: State, commit: _Commit, data: bytes) -> None:
        brought: Metadata | None = None
        told: list[msgspec.Raw] = []
        for action in actions_of(data):
            state.apply(action)
            brought = action.meta_data or brought
            if action.commit_info:
                told.append(action.commit_info)
        self._last = commit_info(told)
        if brought is not None:
            self._note(brought, commit, self._last)

    def _remember(self, commit: _Commit, data: bytes | OSError, *, is_newest: bool) -> None:
        """What a commit that the checkpoint holds already says of the past."""
        if isinstance(data, FileNotFoundError):
            # Somebody tidied the log up meanwhile.
            return
        if isinstance(data, OSError):
            raise data
        try:
            brought, info = schema_actions_of(data)
            if is_newest:
                self._last = commit_info(action.commit_info for action in actions_of(data))
        except Damaged:
            self._unread.append(commit.version)
            return
        if brought is not None:
            self._note(brought, commit, info)

    def _note(self, brought: Metadata, commit: _Commit, info: CommitInfo) -> None:
        self._told.append(
            told_of(
                brought, commit.version, info, modified=commit.modified, exact=not commit.is_run
            )
        )

    def _before(self, first: int, base: int, state: State, known: Memory | None) -> list[Told]:
        """What is known of schemas from before the first commit that was read."""
        now = state.metadata
        earlier = known if known and now and known.metadata.id == now.id else None
        told = [each for each in earlier.told if each.version < first] if earlier else []
        oldest = next(
            (
                checkpoint
                for checkpoint in reversed(self._log.checkpoints)
                if first - 1 <= checkpoint.version <= base
            ),
            None,
        )
        if oldest is None or any(each.version <= oldest.version for each in self._told):
            return told
        then = State(self._folder)
        try:
            load(self._folder, oldest, then, files=False)
        except Damaged as problem:
            self._damaged[oldest.version] = str(problem)
            return told
        if then.metadata is not None:
            brought = told_of(
                then.metadata,
                oldest.version,
                CommitInfo(),
                modified=oldest.modified,
                exact=False,
            )
            told.append(brought)
        return told

    def remarks(self) -> tuple[Remark, ...]:
        """What is odd about the log, though it can be read."""
        remarks = []
        if self._blank:
            remarks.append(
                Remark(
                    _HALF_WRITTEN,
                    f"Commit {self._blank[0]} is empty, as if its writer had stopped: the version "
                    "before it counts.",
                )
            )
        for version, problem in self._damaged.items():
            reason = " ".join(f"Checkpoint {version} was done without: {problem}".split())
            remarks.append(Remark("damaged_checkpoint", f"{reason.rstrip('.')}."))
        return tuple(remarks)
