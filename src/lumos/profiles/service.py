"""The service behind `lumos profile`: measures the rows of datasets and stores profiles."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from time import monotonic
from typing import Final

from msgspec.structs import replace

from lumos.config import Settings
from lumos.discovery.reports import IngestReport, Measurement
from lumos.discovery.scans import check_state
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.dataset import Dataset, Profile, Quality
from lumos.model.discovery import Problem
from lumos.model.privacy import private_paths
from lumos.model.schema import Schema
from lumos.names import find_urn
from lumos.profiles.columns import ProfiledColumn, profiled_columns, with_permissions
from lumos.profiles.files import LocatedFiles, ScannedDatasets, has_files
from lumos.profiles.measurements import ProfileResult
from lumos.profiles.plan import SourceFile, SourceFiles, limit_rows, sample_files
from lumos.profiles.reports import (
    ProfileReport,
    add_columns,
    build_profile,
    completeness,
    with_profile,
)
from lumos.progress import Progress, no_progress
from lumos.sources.addresses import access_of
from lumos.spark.session import spark_session
from lumos.store import Store, Transaction

_WRITER: Final = "profile"
# Jobs below this size are faster without Java's optimising compiler.
_SHORT_JOB_BYTES: Final = 32 * 1024 * 1024


class Profiles:
    """Profiles the datasets of a store."""

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
        """Profile a dataset, a sample of it or only some columns, and store the profile.

        Files that an earlier profile measured are not read again, unless `full`.
        """
        started = monotonic()
        if sample is not None and rows is not None:
            raise MisuseError("Use either --sample or --rows, not both.")
        if sample is not None and not 0 < sample <= 1:
            raise MisuseError(f"--sample must be above 0 and at most 1, not {sample}.")
        if rows is not None and rows < 1:
            raise MisuseError(f"--rows must be at least 1, not {rows}.")
        store = self._store()
        datasets = ScannedDatasets(self._settings, store, state=self._state)
        located = datasets.locate(find_urn(store, urn))
        leaves = self._leaves(located, columns)
        with closing(SourceFiles(located.files)) as all_files:
            selected = _select_files(located, all_files, sample, rows)
            keep = selected is None and not columns
            with closing(all_files if selected is None else SourceFiles(selected)) as files:
                profiled = self._measure(
                    located, files, leaves, keep=keep, full=full, progress=progress
                )
                cached_files = len(files) - profiled.read
                share = (
                    None
                    if selected is None
                    else _share_read(located, all_files, files, profiled, sample)
                )
        at = datetime.now(UTC)
        profile = build_profile(profiled, leaves, at=at, sampled=share)
        # If no file could be read, the earlier profile stays valid.
        is_stored = profile.rows > 0 or not profile.unread
        if is_stored:
            self._record(store, located.dataset, profile, at)
        paths = [leaf.path for leaf in leaves]
        dataset = located.dataset
        return ProfileReport(
            urn=dataset.urn,
            name=dataset.name,
            completeness=completeness(profile),
            profile=profile,
            kept=is_stored,
            files_read=profiled.read,
            files_known=cached_files,
            withheld=tuple(sorted(private_paths(dataset.schema, paths, dataset.governance))),
            problems=(*located.remarks, *profiled.problems.report(dataset.urn)),
            seconds=round(monotonic() - started, 3),
        )

    def completed(self, scanned: IngestReport, progress: Progress) -> IngestReport:
        """Profile the scanned datasets that have no current, complete profile.

        Returns the report of the scan with the measurements added.
        """
        measured, problems = [], list(scanned.problems)
        unchanged = [each.urn for each in scanned.datasets if each.change == "unchanged"]
        complete = self._completely_profiled(unchanged)
        for dataset in scanned.datasets:
            if dataset.urn in complete or not has_files(dataset.format, dataset.statistics):
                continue
            try:
                report = self.profile(dataset.urn, progress=progress)
            except LumosError as problem:
                # The other datasets can still be profiled.
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
        return replace(scanned, measured=tuple(measured), problems=tuple(problems))

    def _completely_profiled(self, urns: Collection[str]) -> set[str]:
        """The URNs of the datasets that have a profile of all files and columns."""
        store = self._store()
        qualities: dict[str, Quality] = store.aspects_of("quality", urns)
        profiles = {
            urn: quality.profile
            for urn, quality in qualities.items()
            if quality.profile is not None and not quality.profile.unread
        }
        schemas = store.schemas.current(profiles)
        return {
            urn for urn, profile in profiles.items() if _has_all_columns(profile, schemas.get(urn))
        }

    def _leaves(self, located: LocatedFiles, columns: Sequence[str]) -> list[ProfiledColumn]:
        dataset = located.dataset
        leaves = profiled_columns(dataset.schema) if dataset.schema else []
        named = self._settings.profile.values
        allowed = with_permissions(leaves, dataset, named=named)
        if not columns:
            return allowed
        known = {name for leaf in leaves for name in (leaf.path, leaf.names[0])}
        for name in columns:
            if name not in known:
                raise UnknownName("column", name, known)
        return [leaf for leaf in allowed if leaf.path in columns or leaf.names[0] in columns]

    def _measure(
        self,
        located: LocatedFiles,
        files: SourceFiles,
        leaves: Sequence[ProfiledColumn],
        *,
        keep: bool,
        full: bool,
        progress: Progress,
    ) -> ProfileResult:
        settings = self._settings
        access = access_of(self._state, settings.sources)
        check_state(self._state, access)
        progress("Starting Spark")
        spark = settings.spark
        is_short = files.size < _SHORT_JOB_BYTES
        with spark_session(
            master=spark.master, settings=spark.properties(), short=is_short
        ) as session:
            # Imported late: pyspark is imported while its JVM starts.
            from lumos.profiles.job import ProfileLocations, measure_files

            step = f"Profiling {located.dataset.name}"
            progress(step)
            digest = hashlib.blake2b(located.dataset.urn.encode(), digest_size=8).hexdigest()
            folder = f"{self._state}/profiles/{digest}"
            locations = ProfileLocations(located.access, folder, access, located.roots)
            return measure_files(
                session,
                files,
                leaves,
                locations,
                fields=located.fields,
                keep=keep,
                remeasure=full,
                report=lambda read, share: progress(
                    step, files=read // 1_000_000, share=share, unit="MB"
                ),
            )

    def _record(self, store: Store, dataset: Dataset, profile: Profile, at: datetime) -> None:
        def save(transaction: Transaction) -> None:
            before: Quality | None = transaction.aspect(dataset.urn, "quality")
            merged = add_columns(before.profile if before else None, profile)
            # The completeness of some columns does not describe the dataset.
            share = completeness(merged) if _has_all_columns(merged, dataset.schema) else None
            quality = with_profile(before, merged, completeness=share)
            transaction.save_aspect(dataset.urn, "quality", quality, writer=_WRITER, at=at)
            transaction.audit("profile", dataset.urn, at=at)

        store.transact(save)


def _has_all_columns(profile: Profile, schema: Schema | None) -> bool:
    paths = {leaf.path for leaf in profiled_columns(schema)} if schema else set()
    return paths <= profile.columns.keys()


def _select_files(
    located: LocatedFiles, files: SourceFiles, sample: float | None, rows: int | None
) -> Iterator[SourceFile] | None:
    """The files to read; None to read all files."""
    if rows is not None:
        row_count = located.dataset.statistics.row_count if located.dataset.statistics else None
        if row_count is None:
            return limit_rows(files, rows)
        sample = rows / max(1, row_count)
    return None if sample is None or sample >= 1 else sample_files(files, sample)


def _share_read(
    located: LocatedFiles,
    all_files: SourceFiles,
    files: SourceFiles,
    profiled: ProfileResult,
    sample: float | None,
) -> float | None:
    """The share of the data that was read, or None if it is unknown."""
    statistics = located.dataset.statistics
    if statistics is not None and statistics.row_count:
        return round(min(1.0, profiled.rows / statistics.row_count), 6)
    if sample is not None:
        return sample
    return round(min(1.0, files.size / max(1, all_files.size)), 6)
