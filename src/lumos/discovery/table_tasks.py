"""Which tables of a lake are read, and which of them are datasets in the end."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

from lumos.discovery.owned_paths import Claims
from lumos.discovery.tables import STRAY, TableDone, TableKept, TableWork
from lumos.model.discovery import Problem
from lumos.storage import FileSelection, TableKind
from lumos.storage.table_roots import METADATA_FOLDER


def table_works(
    roots: Mapping[str, tuple[TableKind, ...]],
    strays: Collection[str],
    known: Mapping[str, TableKept],
    selection: FileSelection,
) -> list[TableWork]:
    """The tables that a scan met, those that no listing showed though they may be there, and
    folders of metadata whose tables lie elsewhere (`strays`).
    """
    owners = {kept.log: root for root, kept in known.items() if kept.log}
    logs = {f"{root}/{METADATA_FOLDER}": root for root in roots}
    met = {owners[log] for log in (*strays, *logs) if log in owners}
    # What holds nothing but the log of a known table is none.
    actual = {root: roots[root] for log, root in logs.items() if log not in owners}
    # A table in another one is part of it, were it the first to be there.
    around = Claims(actual)
    works = [
        TableWork(root, kinds, known.get(root), log=known[root].log if root in known else "")
        for root, kinds in sorted(actual.items())
    ]
    works += [
        # Only Iceberg's metadata may lie elsewhere; of other logs in the root none was met.
        TableWork(
            root,
            ("iceberg",) if root in met else kept.kinds,
            kept,
            met=root in met,
            log=kept.log,
        )
        for root, kept in sorted(known.items())
        if around.of(f"{root}/") is None
    ]
    works += [
        TableWork(log, ("iceberg",), log=log)
        for log in sorted(strays)
        if log not in owners and around.of(f"{log}/") is None
    ]
    return [work for work in works if selection.has_table(work.log or work.root)]


def chosen_tables(done: Sequence[TableDone]) -> tuple[list[TableDone], list[Problem]]:
    """The tables among what was read, each once, and remarks on metadata that is of none.

    A table whose metadata lies elsewhere is one by that metadata's word alone. So it must neither
    hold other tables nor lie in one.
    """
    found = [each for each in done if not each.gone]
    remarks = [problem for each in done if each.gone for problem in each.problems]
    roots = sorted({each.root for each in found})
    certain = Claims(each.root for each in found if not each.kept.log)
    chosen: dict[str, TableDone] = {}
    for each in sorted(found, key=_standing):
        reason = _doubt(each, roots, certain, chosen) if each.kept.log else ""
        if reason:
            remarks.append(_stray(each.kept.log, reason))
        else:
            chosen.setdefault(each.root, each)
    return sorted(chosen.values(), key=lambda each: each.root), remarks


def _standing(each: TableDone) -> tuple[bool, bool, bool, str]:
    """Of several that tell of one table, the first: another kind, then metadata elsewhere.

    That knows of what lies in the usual place, too.
    """
    kept = each.kept
    return each.facts is None, kept.kinds == ("iceberg",), not kept.log, kept.log


def _doubt(
    each: TableDone, roots: Sequence[str], certain: Claims, chosen: Mapping[str, TableDone]
) -> str:
    if _holds_any(each.root, roots) or _holds_any(each.kept.log, roots):
        return "the table that it tells of would hold other ones"
    if certain.of(f"{each.root.rpartition('/')[0]}/") is not None:
        return "the table that it tells of would be part of another one"
    if each.root in chosen:
        return f"the table that it tells of, {each.root}, is told of elsewhere"
    return ""


def _holds_any(folder: str, roots: Sequence[str]) -> bool:
    inside = f"{folder}/"
    place = bisect_left(roots, inside)
    return place < len(roots) and roots[place].startswith(inside)


def _stray(log: str, reason: str) -> Problem:
    words = (
        f"Metadata of Iceberg lies here, but {reason}; it is not read, and its files are taken "
        "for loose ones."
    )
    return Problem(path=log, code=STRAY, reason=words, remark=True)
