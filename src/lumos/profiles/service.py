"""`lumos profile`: measures the rows of a dataset and keeps what they say."""

import getpass
import hashlib
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from lumos.config import Settings
from lumos.discovery.reports import IngestReport, Measurement
from lumos.discovery.state import check_state
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.dataset import Profile, Quality
from lumos.model.discovery import Problem
from lumos.model.privacy import private_paths
from lumos.profiles.assembly import completeness, profile_of
from lumos.profiles.columns import measurable
from lumos.profiles.files import Located, has_files, locate
from lumos.profiles.recorder import with_profile
from lumos.profiles.reports import ProfileReport
from lumos.progress import Progress, no_progress
from lumos.sources.addresses import access_of
from lumos.store import Store, Transaction

if TYPE_CHECKING:
    from lumos.profiles.columns import Leaf
    from lumos.profiles.measurement import Profiled
    from lumos.profiles.plan import SourceFile, SourceFiles

_WRITER: Final = "profile"
# So many bytes are read before what Java compiles for them would have paid off.
_SOON_READ: Final = 32 * 1024 * 1024


class Profiles:
    """Profiles datasets of one store, one at a time."""

    def __init__(self, settings: Settings, store: Callable[[], Store], state: str) -> None:
        self._settings = settings
        self._store = store
        self._state = state

    def profile(
        self,
        urn: str,
        *,
        sample: float | None = None,
        rows: int | None = None,
        columns: Sequence[str] = (),
        full: bool = False,
        progress: Progress = no_progress,
    ) -> ProfileReport:
        """Measures a dataset, or a share of it, or some of its columns, and keeps the profile.

        Files that an earlier profile measured are not read again, unless `full`.
        """
        started = monotonic()
        _check(sample, rows)
        store = self._store()
        located = locate(self._settings, store, store.find(urn), state=self._state)
        leaves = self._leaves(located, columns)
        from lumos.profiles.plan import SourceFiles

        with closing(SourceFiles(located.files)) as every:
            wanted = _wanted(located, every, sample, rows)
            keep = wanted is None and not columns
            with closing(every if wanted is None else SourceFiles(wanted)) as files:
                profiled = self._measured(
                    located, files, leaves, keep=keep, full=full, progress=progress
                )
                known = len(files) - profiled.read
                share = None if wanted is None else _share(located, every, files, profiled, sample)
        at = datetime.now(UTC)
        profile = profile_of(profiled, leaves, at=at, sampled=share)
        # Files that nobody can get at for a while say nothing against what was measured of them.
        is_kept = profile.rows > 0 or not profile.unread
        if is_kept:
            self._record(store, located.dataset.urn, profile, at)
        paths = [leaf.path for leaf in leaves]
        dataset = located.dataset
        return ProfileReport(
            urn=dataset.urn,
            name=dataset.name,
            completeness=completeness(profile),
            profile=profile,
            kept=is_kept,
            files_read=profiled.read,
            files_known=known,
            withheld=tuple(sorted(private_paths(dataset.schema, paths, dataset.governance))),
            problems=(*located.remarks, *profiled.problems.report(dataset.urn)),
            seconds=round(monotonic() - started, 3),
        )

    def completed(self, scanned: IngestReport, progress: Progress) -> IngestReport:
        """A scan's report with profiles of all datasets of files that have none which is whole.

        It is none any more where the scan found a change.
        """
        measured, problems = [], list(scanned.problems)
        known = self._measured_whole()
        for dataset in scanned.datasets:
            is_known = dataset.change == "unchanged" and dataset.urn in known
            if is_known or not has_files(dataset.format, dataset.statistics):
                continue
            try:
                report = self.profile(dataset.urn, progress=progress)
            except LumosError as problem:
                # The others can be measured all the same.
                problems.append(Problem(path=dataset.urn, reason=str(problem), code="not_profiled"))
                continue
            problems += report.problems
            if not report.kept:
                continue
            measured.append(
                Measurement(
                    urn=report.urn,
                    rows=report.profile.rows,
                    completeness=report.completeness,
                    seconds=report.seconds,
                )
            )
        return msgspec.structs.replace(scanned, measured=tuple(measured), problems=tuple(problems))

    def _measured_whole(self) -> set[str]:
        """The datasets with a profile for which every file could be read."""
        qualities: dict[str, Quality] = self._store().aspects("quality")
        profiles = ((urn, quality.profile) for urn, quality in qualities.items())
        return {urn for urn, profile in profiles if profile is not None and not profile.unread}

    def _leaves(self, located: Located, columns: Sequence[str]) -> "list[Leaf]":
        from lumos.profiles.columns import leaves_of

        dataset = located.dataset
        leaves = leaves_of(dataset.schema) if dataset.schema else []
        named = self._settings.profile.values
        allowed = measurable(leaves, dataset, named=named)
        if not columns:
            return allowed
        known = {name for leaf in leaves for name in (leaf.path, leaf.names[0])}
        for name in columns:
            if name not in known:
                raise UnknownName("column", name, known)
        return [leaf for leaf in allowed if leaf.path in columns or leaf.names[0] in columns]

    def _measured(
        self,
        located: Located,
        files: "SourceFiles",
        leaves: "Sequence[Leaf]",
        *,
        keep: bool,
        full: bool,
        progress: Progress,
    ) -> "Profiled":
        settings = self._settings
        access = access_of(self._state, settings.sources)
        check_state(self._state, access)
        progress("Starting Spark")
        from lumos.spark.session import spark_session

        spark = settings.spark
        is_short = files.size < _SOON_READ
        with spark_session(
            master=spark.master, settings=spark.properties(), short=is_short
        ) as session:
            from lumos.profiles.measurement import Place, profile

            step = f"Profiling {located.dataset.name}"
            progress(step)
            folder = self._folder(located.dataset.urn)
            place = Place(located.access, folder, access, located.roots)
            watch = partial(_report_progress, progress, step)
            return profile(
                session,
                files,
                leaves,
                place,
                fields=located.fields,
                keep=keep,
                remeasure=full,
                watch=watch,
            )

    def _folder(self, urn: str) -> str:
        digest = hashlib.blake2b(urn.encode(), digest_size=8).hexdigest()
        return f"{self._state}/profiles/{digest}"

    def _record(self, store: Store, urn: str, profile: Profile, at: datetime) -> None:
        def attempt(transaction: Transaction) -> None:
            before = transaction.aspect(urn, "quality")
            quality = with_profile(before, profile, completeness=completeness(profile))
            transaction.save_aspect(urn, "quality", quality, writer=_WRITER, at=at)
            transaction.audit(
                "profile", urn, actor=getpass.getuser(), origin=socket.gethostname(), at=at
            )

        store.transact(attempt)


def _report_progress(progress: Progress, step: str, read: int, share: float) -> None:
    progress(step, files=read // 1_000_000, share=share, unit="MB")


def _check(sample: float | None, rows: int | None) -> None:
    if sample is not None and rows is not None:
        raise MisuseError("A profile takes a share (--sample) or a number of rows (--rows).")
    if sample is not None and not 0 < sample <= 1:
        raise MisuseError(f"{sample} is no share: --sample takes a number above 0, at most 1.")
    if rows is not None and rows < 1:
        raise MisuseError(f"--rows takes a number of rows, at least 1, not {rows}.")


def _wanted(
    located: Located, files: "SourceFiles", sample: float | None, rows: int | None
) -> "Iterator[SourceFile] | None":
    """The files to read; nothing where that is all of them."""
    from lumos.profiles.plan import limited, sampled

    if rows is not None:
        known = located.dataset.statistics.row_count if located.dataset.statistics else None
        if known is None:
            return limited(files, rows)
        sample = rows / max(1, known)
    return None if sample is None or sample >= 1 else sampled(files, sample)


def _share(
    located: Located,
    every: "SourceFiles",
    files: "SourceFiles",
    profiled: "Profiled",
    sample: float | None,
) -> float | None:
    """Which share of the data was read, as well as it is known."""
    statistics = located.dataset.statistics
    if statistics is not None and statistics.row_count:
        return round(min(1.0, profiled.rows / statistics.row_count), 6)
    if sample is not None:
        return sample
    return round(min(1.0, files.size / max(1, every.size)), 6)
