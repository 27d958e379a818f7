"""Which datasets of loose files turn out to be tables, that go on with their names and history."""

from collections.abc import Collection, Iterable

from lumos.pipeline.claims import Claims
from lumos.pipeline.grouping import Settled
from lumos.pipeline.tables import TableDone
from lumos.storage.markers import METADATA


def former_of(
    tables: Collection[TableDone],
    settled: Iterable[Settled],
    *,
    present: Collection[str],
    known: Collection[str],
) -> dict[str, list[str]]:
    """Which datasets of the last scan are tables now, by root, since all their files are.

    `settled` is what the last scan grouped, `present` are the datasets that there still are, and
    `known` the roots of tables that it knew. Of several tables that were taken for one dataset, the
    first goes on with it. What lay in a folder of metadata comes last: a table rather goes on with
    the history of its data.
    """
    owners = {folder: each.root for each in tables for folder in (each.root, *each.kept.claims)}
    new = sorted(each.root for each in tables if each.root not in known)
    claims = Claims(owners)
    roots: dict[str, set[str]] = {}
    loose = set(present)
    for place in settled:
        claim = claims.of(f"{place.base}/")
        above = [root for root in new if _is_above(place, root)] if claim is None else []
        if claim is not None:
            roots.setdefault(place.dataset, set()).add(owners[claim])
        elif above:
            roots.setdefault(place.dataset, set()).update(above)
        else:
            loose.add(place.dataset)
    found: dict[str, list[str]] = {}
    for path in sorted(roots.keys() - loose, key=lambda each: (_is_metadata(each), each)):
        found.setdefault(min(roots[path]), []).append(path)
    return found


def _is_above(place: Settled, root: str) -> bool:
    """Whether files of a place lay in what is a root, some folder above which varies."""
    if not root.startswith(f"{place.base}/"):
        return False
    folders = root[len(place.base) + 1 :].split("/")
    names = place.pattern.split("/")
    return len(folders) < len(names) and all(
        name == folder or "{" in name for name, folder in zip(names, folders, strict=False)
    )


def _is_metadata(path: str) -> bool:
    return f"/{METADATA}/" in f"{path}/"
