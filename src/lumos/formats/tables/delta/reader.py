"""Reads Delta tables from their log: the newest checkpoint, and the commits after it."""

import hashlib
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

import msgspec

from lumos.formats.interface import Remark, UnreadableFile
from lumos.formats.tables.delta.checkpoints import load_checkpoint
from lumos.formats.tables.delta.facts import live_files, table_facts
from lumos.formats.tables.delta.log import (
    FOLDER,
    CommitInfo,
    CorruptDeltaLog,
    DeltaLog,
    DeltaMetadata,
    delta_log,
    is_log_file,
    log_path,
    parse_commit_info,
    read_actions,
    read_schema_actions,
)
from lumos.formats.tables.delta.state import (
    CommittedSchema,
    DeltaMemory,
    DeltaState,
    commit_time,
    committed_schema,
    decode_memory,
    encode_memory,
    only_changes,
)
from lumos.formats.tables.interface import LiveFile, TableFacts, TableFolder, TableKind, TableReader

_BROKEN_TABLE: Final = "broken_table"
_HALF_WRITTEN_TABLE: Final = "half_written_table"


class DeltaReader(TableReader):
    kind: ClassVar[TableKind] = "delta"
    title: ClassVar[str] = "Delta Lake"

    def signature(self, folder: TableFolder) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for entry in folder.entries(FOLDER):
            if is_log_file(entry.name):
                digest.update(repr(tuple(entry)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def read(
        self, folder: TableFolder, memory: bytes | None, *, max_commits: int
    ) -> tuple[TableFacts, bytes]:
        log = delta_log(folder.entries(FOLDER))
        if log.latest is None:
            raise _no_commit()
        known = decode_memory(memory)
        reading = _LogReading(folder, log)
        try:
            if known is not None and reading.continues(known):
                new_memory = reading.read_new_commits(known)
            else:
                new_memory = reading.read_all(known, max_commits)
            facts = table_facts(new_memory, reading.remarks())
        except CorruptDeltaLog as problem:
            raise UnreadableFile(_BROKEN_TABLE, f"The Delta log is broken: {problem}.") from None
        return facts, memory if memory is not None and new_memory is known else encode_memory(
            new_memory
        )

    def live(self, memory: bytes) -> Iterator[LiveFile]:
        known = decode_memory(memory)
        if known is None:
            raise ValueError("The memory does not belong to a Delta table.")
        return live_files(known)


def _no_commit() -> UnreadableFile:
    return UnreadableFile(_HALF_WRITTEN_TABLE, "The Delta log has no commit yet.")


class _Commit(NamedTuple):
    """A file to read: a commit, or compacted commits up to `version`."""

    version: int
    path: str
    modified: int
    is_compacted: bool = False


class _MissingVersion(Exception):
    """A version without a commit or compacted commits."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


class _LogReading:
    """One read of a log."""

    def __init__(self, folder: TableFolder, log: DeltaLog) -> None:
        assert log.latest is not None
        self._folder = folder
        self._log = log
        self._latest = log.latest
        self._schemas: list[CommittedSchema] = []
        self._unread: list[int] = []
        # Checkpoints that could not be used, with the reasons.
        self._damaged: dict[int, str] = {}
        self._empty = list(log.unfinished)
        # The info of the newest commit that was read.
        self._last = CommitInfo()

    def continues(self, known: DeltaMemory) -> bool:
        """Whether the log continues the known state, so that only newer commits have to be read."""
        if known.last is None or self._log.identity(known.version) != known.last:
            return False
        return self._find_gap(after=known.version) is None

    def read_new_commits(self, known: DeltaMemory) -> DeltaMemory:
        """The state after the commits since the known version."""
        state = DeltaState.of(self._folder, known)
        existing = {checkpoint.version for checkpoint in self._log.checkpoints}
        self._damaged = {at: reason for at, reason in known.damaged.items() if at in existing}
        new = self._commits_after(known.version)
        if not new:
            return known
        self._schemas, self._unread = list(known.schemas), list(known.unread)
        version, modified = self._replay(state, new, base=known.version)
        if version == known.version:
            return known
        return self._memory(state, version, modified)

    def read_all(self, known: DeltaMemory | None, max_commits: int) -> DeltaMemory:
        """The state after the whole log."""
        base, modified, state = self._load_base()
        commits = self._commits_to_read(base, max_commits)
        first = min((commit.version for commit in commits), default=base + 1)
        version, modified = self._replay(state, commits, base=base, modified=modified)
        if version < 0:
            raise _no_commit()
        if first > 0:
            self._schemas += self._earlier_schemas(first, base, state, known)
        return self._memory(state, version, modified)

    def _memory(self, state: DeltaState, version: int, modified: int) -> DeltaMemory:
        return state.memory(
            version=version,
            last=self._log.identity(version),
            at=commit_time(self._last, modified),
            operation=self._last.operation,
            schemas=only_changes(self._schemas),
            unread=self._unread,
            damaged=self._damaged,
        )

    def _find_gap(self, after: int) -> int | None:
        """The first missing version after `after`."""
        try:
            self._commits_after(after)
        except _MissingVersion as gap:
            return gap.version
        return None

    def _commits_after(self, after: int, *, prefer_compacted_until: int = 0) -> list[_Commit]:
        """Return the files after a version; compacted commits fill gaps and early versions."""
        steps = []
        version = after + 1
        while version <= self._latest:
            compacted = None
            if version not in self._log.commits or version < prefer_compacted_until:
                compacted = self._find_compacted(version)
            if compacted is None and version not in self._log.commits:
                raise _MissingVersion(version)
            steps.append(compacted or self._commit(version))
            version = steps[-1].version + 1
        return steps

    def _commit(self, version: int) -> _Commit:
        entry = self._log.commits[version]
        return _Commit(version, log_path(entry.name), entry.modified)

    def _find_compacted(self, version: int) -> _Commit | None:
        # A compacted file may begin earlier, because it contains the last state of its files.
        candidates = [
            compacted
            for compacted in self._log.compacted
            if compacted.first <= version <= compacted.last <= self._latest
        ]
        if not candidates:
            return None
        longest = max(candidates, key=lambda compacted: compacted.last)
        return _Commit(longest.last, log_path(longest.entry.name), longest.entry.modified, True)

    def _load_base(self) -> tuple[int, int, DeltaState]:
        """Version, time and state of the newest readable checkpoint, or of an empty table."""
        for checkpoint in self._log.checkpoints:
            missing = self._find_gap(after=checkpoint.version)
            if missing is not None:
                raise CorruptDeltaLog(f"commit {missing} is missing, but there are later ones")
            state = DeltaState(self._folder)
            try:
                load_checkpoint(self._folder, checkpoint, state)
            except CorruptDeltaLog as problem:
                self._damaged[checkpoint.version] = str(problem)
                continue
            return checkpoint.version, checkpoint.modified, state
        missing = self._find_gap(after=-1)
        if missing is None:
            return -1, 0, DeltaState(self._folder)
        if self._damaged:
            version, why = next(iter(self._damaged.items()))
            raise CorruptDeltaLog(f"checkpoint {version}: {why}; and commit {missing} is missing")
        if missing == 0:
            raise CorruptDeltaLog("its first commit is missing, and there is no checkpoint")
        raise CorruptDeltaLog(f"commit {missing} is missing, but there are later ones")

    def _commits_to_read(self, base: int, max_commits: int) -> list[_Commit]:
        """The commits since `base`, and the last `max_commits` commits for the schema history."""
        history = sorted(self._log.commits)[-max_commits:] if max_commits > 0 else []
        commits = [self._commit(version) for version in history if version <= base]
        oldest = history[0] if history else self._latest + 1
        return commits + self._commits_after(base, prefer_compacted_until=oldest)

    def _replay(
        self, state: DeltaState, commits: list[_Commit], *, base: int, modified: int = 0
    ) -> tuple[int, int]:
        """Apply the commits to the state and the history; returns the last version and its time."""
        version = base
        contents = self._folder.read_many([commit.path for commit in commits])
        for commit, data in zip(commits, contents, strict=True):
            if commit.version <= base:
                self._add_to_history(commit, data, is_newest=commit.version == base)
                modified = commit.modified if commit.version == base else modified
                continue
            if isinstance(data, OSError):
                raise data
            if not data.strip():
                self._empty.append(commit.version)
                continue
            try:
                self._apply(state, commit, data)
            except CorruptDeltaLog as problem:
                raise CorruptDeltaLog(f"commit {commit.version}: {problem}") from None
            version, modified = commit.version, commit.modified
        # An empty commit that others follow changed nothing.
        self._empty = [each for each in self._empty if each > version]
        return version, modified

    def _apply(self, state: DeltaState, commit: _Commit, data: bytes) -> None:
        metadata: DeltaMetadata | None = None
        infos: list[msgspec.Raw] = []
        for action in read_actions(data):
            state.apply(action)
            metadata = action.meta_data or metadata
            if action.commit_info:
                infos.append(action.commit_info)
        self._last = parse_commit_info(infos)
        if metadata is not None:
            self._add_schema(metadata, commit, self._last)

    def _add_to_history(self, commit: _Commit, data: bytes | OSError, *, is_newest: bool) -> None:
        """Add the schema of a commit that the checkpoint contains to the history."""
        if isinstance(data, FileNotFoundError):
            # The log was cleaned up in the meantime.
            return
        if isinstance(data, OSError):
            raise data
        try:
            metadata, info = read_schema_actions(data)
            if is_newest:
                self._last = parse_commit_info(action.commit_info for action in read_actions(data))
        except CorruptDeltaLog:
            self._unread.append(commit.version)
            return
        if metadata is not None:
            self._add_schema(metadata, commit, info)

    def _add_schema(self, metadata: DeltaMetadata, commit: _Commit, info: CommitInfo) -> None:
        self._schemas.append(
            committed_schema(
                metadata,
                commit.version,
                info,
                modified=commit.modified,
                exact=not commit.is_compacted,
            )
        )

    def _earlier_schemas(
        self, first: int, base: int, state: DeltaState, known: DeltaMemory | None
    ) -> list[CommittedSchema]:
        """The schemas before the first commit that was read."""
        current = state.metadata
        earlier = known if known and current and known.metadata.id == current.id else None
        schemas = [each for each in earlier.schemas if each.version < first] if earlier else []
        oldest = next(
            (
                checkpoint
                for checkpoint in reversed(self._log.checkpoints)
                if first - 1 <= checkpoint.version <= base
            ),
            None,
        )
        if oldest is None or any(each.version <= oldest.version for each in self._schemas):
            return schemas
        state_before = DeltaState(self._folder)
        try:
            load_checkpoint(self._folder, oldest, state_before, files=False)
        except CorruptDeltaLog as problem:
            self._damaged[oldest.version] = str(problem)
            return schemas
        if state_before.metadata is not None:
            schema = committed_schema(
                state_before.metadata,
                oldest.version,
                CommitInfo(),
                modified=oldest.modified,
                exact=False,
            )
            schemas.append(schema)
        return schemas

    def remarks(self) -> tuple[Remark, ...]:
        """Remarks on a readable log."""
        remarks = []
        if self._empty:
            remarks.append(
                Remark(
                    _HALF_WRITTEN_TABLE,
                    f"Commit {self._empty[0]} is empty: its writer stopped or has not finished; "
                    "the version before it was read.",
                )
            )
        for version, problem in self._damaged.items():
            reason = " ".join(f"Checkpoint {version} could not be used: {problem}".split())
            remarks.append(Remark("damaged_checkpoint", f"{reason.rstrip('.')}."))
        return tuple(remarks)
