"""Adds, lists and removes hints, and reports how they change the datasets of the last scan."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from lumos.config import Settings
from lumos.config.hint_file import SCAN, HintFile, NotEditable, edit_hint_file
from lumos.config.sources import DatasetHint, FileStoreSettings
from lumos.discovery.hints.effects import HintEffect, ScannedRoot, effects_of
from lumos.discovery.hints.listing import (
    IN_STORE,
    WILDCARD,
    HintRequest,
    ListedHint,
    NoSuchHint,
    find_equal_hint,
    find_hint,
    is_absolute,
    list_hints,
    number_of_hint,
    to_absolute,
    to_dataset_hint,
    with_hints,
    with_stored_hints,
)
from lumos.discovery.scans import state_folder
from lumos.discovery.targets import file_roots, hints_for, is_below, selection_for, urns_for
from lumos.errors import MisuseError
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.urn import Urn
from lumos.sources import hints_of
from lumos.sources.addresses import access_of
from lumos.storage import FileHint
from lumos.store import FinishedScan, Store, StoredHint, Transaction
from lumos.store.transaction import current_user

_MAX_ROOTS: Final = 10

Action = Literal["join", "split", "name"]


class UnknownRoot(MisuseError):
    """A pattern outside of all roots of sources and scans."""

    def __init__(self, pattern: str, roots: Sequence[str], *, suggestion: str | None) -> None:
        self.pattern = pattern
        self.roots = tuple(roots)
        more = f" and {len(roots) - _MAX_ROOTS} more" if len(roots) > _MAX_ROOTS else ""
        listed = f"Known roots: {', '.join(roots[:_MAX_ROOTS])}{more}."
        known_roots = listed if roots else "No root is known yet."
        folder = WILDCARD.split(pattern)[0].rpartition("/")[0] or "/"
        advice = f" Did you mean '{suggestion}'?" if suggestion else ""
        super().__init__(
            f"'{pattern}' is not in a known root. {known_roots}{advice} "
            f"To scan that folder first: lumos ingest {quote(folder)}"
        )


class NameTaken(MisuseError):
    """A hint that would give a dataset the URN of another dataset."""

    def __init__(self, urn: Urn, free: str) -> None:
        self.urn = urn
        self.free = free
        super().__init__(
            f"{urn} already exists and has files that the hint does not match. Give the hint "
            f"another name: --name {quote(free)}"
        )


class HintReport(Report, frozen=True, kw_only=True):
    """A hint, where it is stored and how many files of the last scans match it.

    `number` is its position in the order in which hints are tried; 0 if it is not stored.
    """

    number: int
    patterns: tuple[str, ...]
    name: str | None
    action: Action
    kept_in: Literal["config", "store"]
    file: str | None = None
    line: int | None = None
    section: str | None = None
    author: str | None = None
    added_at: datetime | None = None
    files: int | None = None


class HintListReport(Report, frozen=True, kw_only=True):
    """All hints, in the order in which they are tried."""

    format_version: str = FORMAT_VERSION
    hints: tuple[HintReport, ...]


class HintChangeReport(Report, frozen=True, kw_only=True):
    """A hint that was or would be added or removed, and its effect on the last scan.

    If the root of the hint was not scanned, `scanned_at` is null and the effect is unknown.
    """

    format_version: str = FORMAT_VERSION
    change: Literal["added", "removed", "unchanged"]
    dry_run: bool
    hint: HintReport
    root: str | None
    scanned_at: datetime | None
    effects: tuple[HintEffect, ...]
    warnings: tuple[str, ...]
    next_command: str


class _Effect(NamedTuple):
    """The effect of a change of hints on all roots; unknown if no root was scanned.

    `matched` is the number of files that match the hint, and `shadowed` is how many of these files
    an earlier hint matches as well, so that the earlier hint applies.
    """

    effects: tuple[HintEffect, ...] = ()
    matched: int | None = None
    shadowed: int = 0
    scanned_at: datetime | None = None
    problem: str | None = None

    def plus(self, other: "_Effect", *, scanned_at: datetime) -> "_Effect":
        """The sum of the effects on two roots."""
        return _Effect(
            (*self.effects, *other.effects),
            (self.matched or 0) + (other.matched or 0),
            self.shadowed + other.shadowed,
            self.scanned_at or scanned_at,
        )


class Hints:
    """Adds, lists and removes hints, and reports their effect without a scan.

    `load` reads the settings from a text or, for None, from the configuration file. `use_settings`
    is called with the new settings after the file has changed.
    """

    def __init__(
        self,
        load: Callable[[str | None], Settings],
        *,
        use_settings: Callable[[Settings], None],
        store: Callable[[], Store | None],
        make_store: Callable[[], Store],
        state: Callable[[], str],
    ) -> None:
        self._load = load
        self._use_settings = use_settings
        self._store = store
        self._make_store = make_store
        self._state = state

    def list(self) -> HintListReport:
        """All hints, and how many files of the last scans match each."""
        settings, store = self._load(None), self._store()
        hints = list_hints(settings, store)
        counts = self._count_files(hints, settings, _scans(store)) if hints else None
        files = [None] * len(hints) if counts is None else counts
        reports = (
            _hint_report(hint, settings, number=number, files=count)
            for number, (hint, count) in enumerate(zip(hints, files, strict=True), start=1)
        )
        return HintListReport(hints=tuple(reports))

    def _count_files(
        self, hints: Sequence[ListedHint], settings: Settings, scans: dict[str, FinishedScan]
    ) -> Sequence[int] | None:
        """The number of files that match each hint; None if the files of a scan are unknown."""
        if not scans:
            return None
        from lumos.discovery.lake.parts import LOST_PART_ERRORS

        counts = [0] * len(hints)
        for root, scan in scans.items():
            numbers = [index for index, each in enumerate(hints) if each.applies_to(root)]
            file_hints = hints_of([hints[index].hint for index in numbers])
            try:
                for matching in self._load_root(settings, scan).matches(file_hints):
                    for index in matching:
                        counts[numbers[index]] += 1
            except (OSError, *LOST_PART_ERRORS):
                return None
        return counts

    def add(
        self,
        *patterns: str,
        name: str | None = None,
        split: bool = False,
        in_store: bool = False,
        dry_run: bool = False,
    ) -> HintChangeReport:
        """Join the files that match the patterns into one dataset, split them, or name them.

        The hint is written to the configuration file if there is one, otherwise to the store;
        `in_store` always writes it to the store. A dry run writes nothing.
        """
        settings = self._load(None)
        request = self._parse_request(patterns, name=name, split=split, settings=settings)
        file = settings.origin.file
        if file is None or in_store:
            return self._add_to_store(request, settings, dry_run=dry_run)
        return self._add_to_file(request, Path(file), dry_run=dry_run)

    def preview(
        self, *patterns: str, name: str | None = None, split: bool = False, in_store: bool = False
    ) -> HintChangeReport:
        """The effect that a hint would have on the datasets of the last scan."""
        return self.add(*patterns, name=name, split=split, in_store=in_store, dry_run=True)

    def remove(self, which: int | str, *, dry_run: bool = False) -> HintChangeReport:
        """Remove a hint by its number in the list, or by its pattern."""
        settings, store = self._load(None), self._store()
        number, hint = find_hint(which, list_hints(settings, store), settings)
        report = _hint_report(hint, settings, number=number)
        before = with_stored_hints(settings, store)
        if hint.stored is not None:
            stored_hints = () if store is None else store.hints.list()
            after = with_hints(
                settings, (to_dataset_hint(each) for each in stored_hints if each != hint.stored)
            )
            if not dry_run:
                self._make_store().transact(lambda each: _remove_stored(each, hint.stored))
        else:
            assert settings.origin.file is not None
            with edit_hint_file(Path(settings.origin.file), self._load, write=not dry_run) as file:
                listed = list_hints(file.settings, store)
                # Another process may have changed the list in the meantime.
                if hint not in listed:
                    raise NoSuchHint(str(which))
                file.remove(hint.section, hint.position)
            after = with_stored_hints(file.settings, store)
            if not dry_run:
                self._use_settings(file.settings)
        roots = [root for root in _scans(store) if hint.applies_to(root)]
        effect = self._effect(hint.hint, before, after, roots)
        return _change_report("removed", report, effect, settings, roots, (), dry_run=dry_run)

    def _parse_request(
        self, patterns: Sequence[str], *, name: str | None, split: bool, settings: Settings
    ) -> HintRequest:
        """The hint with absolute paths; raises MisuseError if a pattern cannot be used."""
        if not patterns:
            raise MisuseError("Give a pattern for the files: lumos hint add 'raw/events/**'")
        if len(patterns) > 1 and name is None and not split:
            raise MisuseError(
                f"A dataset of {len(patterns)} patterns needs a name: --name NAME. If "
                "the shell has expanded a pattern, put it in quotes."
            )
        roots = list(dict.fromkeys((*_configured_roots(settings), *_scans(self._store()))))
        absolute = tuple(to_absolute(pattern, settings) for pattern in patterns)
        roots_by_pattern: list[list[str]] = []
        for pattern, path in zip(patterns, absolute, strict=True):
            outer_roots = sorted(
                (root for root in roots if is_below(path, root)), key=len, reverse=True
            )
            if not outer_roots:
                is_relative = not is_absolute(pattern) and ".." not in pattern and len(roots) == 1
                suggestion = f"{roots[0]}/{pattern}" if is_relative else None
                raise UnknownRoot(path, roots, suggestion=suggestion)
            roots_by_pattern.append(outer_roots)
        if len({each[0] for each in roots_by_pattern}) > 1:
            raise MisuseError(
                "The patterns of a hint must lie in one root, but these lie in several: "
                f"{', '.join(dict.fromkeys(each[0] for each in roots_by_pattern))}. "
                "Add a hint for each root."
            )
        # A pattern that is the path of a root means all files in the root.
        paths = tuple(f"{path}/**" if path in roots else path for path in absolute)
        return HintRequest(
            DatasetHint(path=paths, name=name, split=split), tuple(roots_by_pattern[0])
        )

    def _add_to_file(self, request: HintRequest, file: Path, *, dry_run: bool) -> HintChangeReport:
        store = self._store()
        with edit_hint_file(file, self._load, write=not dry_run) as opened:
            before = opened.settings
            equal = find_equal_hint(request, list_hints(before, store))
            if equal is None:
                added = _insert(opened, request)
                after = opened.settings
                # This raises NameTaken, if applicable, before the file is written.
                effect = self._effect(
                    added.hint,
                    with_stored_hints(before, store),
                    with_stored_hints(after, store),
                    request.roots,
                )
        if equal is not None:
            return self._report_unchanged(request, before, store, dry_run=dry_run)
        if not dry_run:
            self._use_settings(after)
        return self._report_added(
            request, added, effect, with_stored_hints(after, store), dry_run=dry_run
        )

    def _add_to_store(
        self, request: HintRequest, settings: Settings, *, dry_run: bool
    ) -> HintChangeReport:
        store = self._store()
        if find_equal_hint(request, list_hints(settings, store)) is not None:
            return self._report_unchanged(request, settings, store, dry_run=dry_run)
        before = with_stored_hints(settings, store)
        after = with_hints(before, [request.hint])
        effect = self._effect(request.hint, before, after, request.roots)
        if not dry_run:
            store = self._make_store()
            if store.transact(lambda each: _add_stored(each, request.hint)) is None:
                # Another process has added it in the meantime.
                return self._report_unchanged(request, settings, store, dry_run=dry_run)
        added = find_equal_hint(request, list_hints(settings, store)) or ListedHint(
            request.hint, IN_STORE, 0
        )
        return self._report_added(request, added, effect, after, dry_run=dry_run)

    def _report_added(
        self,
        request: HintRequest,
        added: ListedHint,
        effect: _Effect,
        after: Settings,
        *,
        dry_run: bool,
    ) -> HintChangeReport:
        warnings: list[str] = []
        if effect.matched == 0 and effect.scanned_at is not None:
            warnings.append("No file of the last scan matches the hint.")
        if effect.shadowed:
            warnings.append(
                f"An earlier hint applies to {effect.shadowed:,} of the {effect.matched:,} "
                "matching files: the first hint that matches a file is used. See: lumos hint list"
            )
        number = (
            0 if dry_run else number_of_hint(added, list_hints(self._load(None), self._store()))
        )
        report = _hint_report(added, after, number=number, files=effect.matched)
        return _change_report(
            "added", report, effect, after, request.roots, warnings, dry_run=dry_run
        )

    def _report_unchanged(
        self, request: HintRequest, settings: Settings, store: Store | None, *, dry_run: bool
    ) -> HintChangeReport:
        hints = list_hints(settings, store)
        equal = find_equal_hint(request, hints)
        assert equal is not None
        report = _hint_report(equal, settings, number=number_of_hint(equal, hints))
        return _change_report(
            "unchanged", report, _Effect(), settings, request.roots, (), dry_run=dry_run
        )

    def _effect(
        self, hint: DatasetHint, before: Settings, after: Settings, roots: Iterable[str]
    ) -> _Effect:
        """The effect of adding or removing a hint on the files of the last scans.

        Raises NameTaken if a new hint would give a dataset the URN of another one.
        """
        from lumos.discovery.lake.parts import LOST_PART_ERRORS

        scans = _scans(self._store())
        total = _Effect()
        try:
            for root in roots:
                scanned = self._load_root(before, scans[root]) if root in scans else None
                if scanned is not None and scanned.manifest.parts:
                    effect = _root_effect(
                        scanned, hint, hints_for(after, root), urns_for(before, root)
                    )
                    total = total.plus(effect, scanned_at=scans[root].finished_at)
        except (OSError, *LOST_PART_ERRORS) as problem:
            return _Effect(problem=f"The files of the last scan cannot be read: {problem}.")
        return total

    def _load_root(self, settings: Settings, scan: FinishedScan) -> ScannedRoot:
        from lumos.discovery.lake.manifest import ManifestStore

        access = access_of(self._state(), settings.sources)
        folder = state_folder(self._state(), scan.source)
        manifest = ManifestStore(folder, access).read(scan.manifest)
        return ScannedRoot(selection_for(settings, _root_of(scan)), manifest, access)


def _root_effect(
    scanned: ScannedRoot, hint: DatasetHint, after: Sequence[FileHint], urn_of: Callable[[str], Urn]
) -> _Effect:
    """The effect of adding or removing a hint on the files of one root."""
    (changed,) = hints_of([hint])
    hints = list(after if changed in after else scanned.selection.hints)
    index = hints.index(changed)
    matches = [each for each in scanned.matches(hints[: index + 1]) if index in each]
    comparison = scanned.compare_grouping(changed, after)
    taken = comparison.taken_path(index) if changed in after else None
    # A split names every dataset by a value, so another name would not help.
    if taken is not None and action_of(hint) != "split":
        path, free = taken
        raise NameTaken(urn_of(path), free.rpartition("/")[2])
    return _Effect(
        tuple(effects_of(comparison.moves(), urn_of)),
        len(matches),
        sum(numbers[0] != index for numbers in matches),
    )


def _configured_roots(settings: Settings) -> list[str]:
    sections = (*settings.sources, *(each.source for each in settings.change_detection.sources))
    return [
        root
        for section in sections
        if isinstance(section, FileStoreSettings)
        for root in file_roots(section)
    ]


def _scans(store: Store | None) -> dict[str, FinishedScan]:
    """The last scan of every root of files."""
    scans = () if store is None else store.scans()
    by_root = {_root_of(scan): scan for scan in scans}
    return {root: scan for root, scan in by_root.items() if is_absolute(root)}


def _root_of(scan: FinishedScan) -> str:
    return scan.source.partition(":")[2]


def _insert(opened: HintFile, request: HintRequest) -> ListedHint:
    """Write a hint to the section of the only source that it applies to, or else of all scans."""
    section = _section_of_root(opened.settings, request)
    if section is not None:
        prefix = f"{request.roots[0].rstrip('/')}/"
        relative = tuple(path.removeprefix(prefix) for path in request.hint.paths)
        # The YAML of a section may be an alias that other sections share, or not a mapping.
        with suppress(NotEditable):
            return _append(opened, section, replace(request.hint, path=relative))
    try:
        return _append(opened, SCAN, request.hint)
    except NotEditable as problem:
        raise NotEditable(f"{problem} Keep the hint in the store: --in-store") from None


def _append(opened: HintFile, section: str, hint: DatasetHint) -> ListedHint:
    opened.add(section, hint)
    return next(
        each
        for each in reversed(list_hints(opened.settings, None))
        if each.section == section and each.hint == hint
    )


def _section_of_root(settings: Settings, request: HintRequest) -> str | None:
    """The section of the only source that scans the root of a hint, if this is its only root."""
    sections = [
        (index, roots)
        for index, section in enumerate(settings.sources)
        if isinstance(section, FileStoreSettings)
        and not set(roots := file_roots(section)).isdisjoint(request.roots)
    ]
    if len(request.roots) == 1 and len(sections) == 1 and len(sections[0][1]) == 1:
        return f"sources[{sections[0][0]}]"
    return None


def _add_stored(transaction: Transaction, hint: DatasetHint) -> int | None:
    at = datetime.now(UTC)
    added = transaction.hints.add(
        hint.paths, name=hint.name, split=hint.split, author=current_user(), at=at
    )
    if added is not None:
        transaction.audit("hint add", ", ".join(hint.paths), at=at, details=_describe_hint(hint))
    return added


def _remove_stored(transaction: Transaction, stored: StoredHint | None) -> None:
    assert stored is not None
    if not transaction.hints.remove(stored.id):
        raise NoSuchHint(", ".join(stored.paths))
    hint = to_dataset_hint(stored)
    at = datetime.now(UTC)
    transaction.audit("hint remove", ", ".join(hint.paths), at=at, details=_describe_hint(hint))


def _describe_hint(hint: DatasetHint) -> str:
    return f"{action_of(hint)} as {hint.name}" if hint.name else action_of(hint)


def action_of(hint: DatasetHint) -> Action:
    """Whether a hint joins files, splits them, or only names their dataset."""
    if hint.split or any("{" in path for path in hint.paths):
        return "split"
    is_plain = len(hint.paths) == 1 and not WILDCARD.search(hint.paths[0])
    return "name" if hint.name is not None and is_plain else "join"


def _hint_report(
    hint: ListedHint, settings: Settings, *, number: int, files: int | None = None
) -> HintReport:
    is_stored = hint.section == IN_STORE
    stored = hint.stored
    return HintReport(
        number=number,
        patterns=hint.hint.paths,
        name=hint.hint.name,
        action=action_of(hint.hint),
        kept_in="store" if is_stored else "config",
        file=None if is_stored else settings.origin.file,
        line=settings.origin.lines.get(f"{hint.section}.datasets[{hint.position}]"),
        section=None if is_stored else f"{hint.section}.datasets",
        author=None if stored is None else stored.author,
        added_at=None if stored is None else stored.added_at,
        files=files,
    )


def _change_report(
    change: Literal["added", "removed", "unchanged"],
    hint: HintReport,
    effect: _Effect,
    settings: Settings,
    roots: Sequence[str],
    warnings: Sequence[str],
    *,
    dry_run: bool,
) -> HintChangeReport:
    is_configured = not roots or roots[0] in _configured_roots(settings)
    return HintChangeReport(
        change=change,
        dry_run=dry_run,
        hint=hint,
        root=roots[0] if roots else None,
        scanned_at=effect.scanned_at,
        effects=effect.effects,
        warnings=(*warnings, *([effect.problem] if effect.problem else [])),
        next_command="lumos ingest" if is_configured else f"lumos ingest {quote(roots[0])}",
    )
