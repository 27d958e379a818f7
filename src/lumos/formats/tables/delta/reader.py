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
    DeltaSavedState,
    DeltaState,
    commit_time,
    committed_schema,
    decode_saved_state,
    encode_saved_state,
    without_repetitions,
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
        self, folder: TableFolder, saved_state: bytes | None, *, max_commits: int
    ) -> tuple[TableFacts, bytes]:
        log = delta_log(folder.entries(FOLDER))
        if log.latest is None:
            raise _no_commit()
        known = decode_saved_state(saved_state)
        log_read = _LogRead(folder, log)
        try:
            if known is not None and log_read.continues(known):
                new_state = log_read.read_new_commits(known)
            else:
                new_state = log_read.read_all(known, max_commits)
            facts = table_facts(new_state, log_read.remarks())
        except CorruptDeltaLog as problem:
            raise UnreadableFile(_BROKEN_TABLE, f"The Delta log is broken: {problem}.") from None
        return (
            facts,
            saved_state
            if saved_state is not None and new_state is known
            else encode_saved_state(new_state),
        )

    def live(self, saved_state: bytes) -> Iterator[LiveFile]:
        known = decode_saved_state(saved_state)
        if known is None:
            raise ValueError("The saved state does not belong to a Delta table.")
        return live_files(known)


def _no_commit() -> UnreadableFile:
    return UnreadableFile(_HALF_WRITTEN_TABLE, "The Delta log has no commit yet.")


class _Commit(NamedTuple):
    """A file to read: the commit of `version`, or compacted commits up to that version."""

    version: int
    path: str
    modified: int
    is_compacted: bool = False


class _MissingVersion(Exception):
    """Neither a commit nor compacted commits exist for a version."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


class _LogRead:
    """One read of a log."""

    def __init__(self, folder: TableFolder, log: DeltaLog) -> None:
        assert log.latest is not None
        self._folder = folder
        self._log = log
        self._latest = log.latest
        self._schemas: list[CommittedSchema] = []
        self._unread: list[int] = []
        # The reasons why checkpoints could not be used, by version.
        self._damaged: dict[int, str] = {}
        self._empty_commits = list(log.unfinished)
        # The info of the newest commit that was read.
        self._last_info = CommitInfo()

    def continues(self, known: DeltaSavedState) -> bool:
        """Whether only the commits after the known version have to be read."""
        if known.last is None or self._log.identity(known.version) != known.last:
            return False
        return self._find_gap(after=known.version) is None

    def read_new_commits(self, known: DeltaSavedState) -> DeltaSavedState:
        """The state after the commits since the known version."""
        state = DeltaState.of(self._folder, known)
        checkpoints = {checkpoint.version for checkpoint in self._log.checkpoints}
        self._damaged = {
            version: reason for version, reason in known.damaged.items() if version in checkpoints
        }
        new_commits = self._commits_after(known.version)
        if not new_commits:
            return known
        self._schemas, self._unread = list(known.schemas), list(known.unread)
        version, modified = self._replay(state, new_commits, base=known.version)
        if version == known.version:
            return known
        return self._save(state, version, modified)

    def read_all(self, known: DeltaSavedState | None, max_commits: int) -> DeltaSavedState:
        """The state after the whole log."""
        base, modified, state = self._load_base()
        commits = self._commits_to_read(base, max_commits)
        first = min((commit.version for commit in commits), default=base + 1)
        version, modified = self._replay(state, commits, base=base, modified=modified)
        if version < 0:
            raise _no_commit()
        if first > 0:
            self._schemas += self._earlier_schemas(first, base, state, known)
        return self._save(state, version, modified)

    def _save(self, state: DeltaState, version: int, modified: int) -> DeltaSavedState:
        return state.save(
            version=version,
            last=self._log.identity(version),
            at=commit_time(self._last_info, modified),
            operation=self._last_info.operation,
            schemas=without_repetitions(self._schemas),
            unread=self._unread,
            damaged=self._damaged,
        )

    def _find_gap(self, after: int) -> int | None:
        """The first version after `after` that is missing."""
        try:
            self._commits_after(after)
        except _MissingVersion as gap:
            return gap.version
        return None

    def _commits_after(self, after: int, *, prefer_compacted_until: int = 0) -> list[_Commit]:
        """The files to read after a version.

        Compacted commits are used for missing commits, and before `prefer_compacted_until`.
        """
        commits = []
        version = after + 1
        while version <= self._latest:
            compacted = None
            if version not in self._log.commits or version < prefer_compacted_until:
                compacted = self._find_compacted(version)
            if compacted is None and version not in self._log.commits:
                raise _MissingVersion(version)
            commits.append(compacted or self._commit(version))
            version = commits[-1].version + 1
        return commits

    def _commit(self, version: int) -> _Commit:
        entry = self._log.commits[version]
        return _Commit(version, log_path(entry.name), entry.modified)

    def _find_compacted(self, version: int) -> _Commit | None:
        # The file may start at an earlier version: its actions replace those of earlier commits.
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
            version, reason = next(iter(self._damaged.items()))
            raise CorruptDeltaLog(
                f"checkpoint {version}: {reason}; and commit {missing} is missing"
            )
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
                self._empty_commits.append(commit.version)
                continue
            try:
                self._apply(state, commit, data)
            except CorruptDeltaLog as problem:
                raise CorruptDeltaLog(f"commit {commit.version}: {problem}") from None
            version, modified = commit.version, commit.modified
        # An empty commit before other commits changed nothing.
        self._empty_commits = [empty for empty in self._empty_commits if empty > version]
        return version, modified

    def _apply(self, state: DeltaState, commit: _Commit, data: bytes) -> None:
        metadata: DeltaMetadata | None = None
        infos: list[msgspec.Raw] = []
        for action in read_actions(data):
            state.apply(action)
            metadata = action.meta_data or metadata
            if action.commit_info:
                infos.append(action.commit_info)
        self._last_info = parse_commit_info(infos)
        if metadata is not None:
            self._add_schema(metadata, commit, self._last_info)

    def _add_to_history(self, commit: _Commit, data: bytes | OSError, *, is_newest: bool) -> None:
        """Add the schema of a commit to the history; its other actions are in the checkpoint."""
        if isinstance(data, FileNotFoundError):
            # The log was cleaned up after it was listed.
            return
        if isinstance(data, OSError):
            raise data
        try:
            metadata, info = read_schema_actions(data)
            if is_newest:
                self._last_info = parse_commit_info(
                    action.commit_info for action in read_actions(data)
                )
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
        self, first: int, base: int, state: DeltaState, known: DeltaSavedState | None
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
        if self._empty_commits:
            remarks.append(
                Remark(
                    _HALF_WRITTEN_TABLE,
                    f"Commit {self._empty_commits[0]} is empty: its writer stopped or has not "
                    "finished; the version before it was read.",
                )
            )
        for version, problem in self._damaged.items():
            reason = " ".join(f"Checkpoint {version} could not be used: {problem}".split())
            remarks.append(Remark("damaged_checkpoint", f"{reason.rstrip('.')}."))
        return tuple(remarks)
