"""What a change of hints comes to: datasets before and after, those together that share files."""

from collections import Counter
from collections.abc import Callable
from typing import Literal

from lumos.engine.reports import Report
from lumos.model.urn import Urn

EffectKind = Literal["joined", "split", "renamed", "regrouped", "added", "dropped"]


class DatasetFiles(Report, frozen=True, kw_only=True):
    """A dataset and its number of files."""

    urn: str
    files: int


class HintEffect(Report, frozen=True, kw_only=True):
    """Datasets that share files before and after a change of hints."""

    kind: EffectKind
    before: tuple[DatasetFiles, ...]
    after: tuple[DatasetFiles, ...]


def effects_of(
    moves: Counter[tuple[str | None, str | None]], urn_of: Callable[[str], Urn]
) -> list[HintEffect]:
    """The datasets that change, from the number of files that move from one to another."""
    olds, news = Counter[str](), Counter[str]()
    links: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for (old, new), files in moves.items():
        nodes = [(side, name) for side, name in (("old", old), ("new", new)) if name is not None]
        olds.update({old: files} if old is not None else {})
        news.update({new: files} if new is not None else {})
        for node in nodes:
            links.setdefault(node, set()).update(nodes)
    effects: list[HintEffect] = []
    seen: set[tuple[str, str]] = set()
    for start in sorted(links):
        if start in seen:
            continue
        together, waiting = {start}, [start]
        while waiting:
            for node in links[waiting.pop()] - together:
                together.add(node)
                waiting.append(node)
        seen |= together
        before = {name: olds[name] for side, name in sorted(together) if side == "old"}
        after = {name: news[name] for side, name in sorted(together) if side == "new"}
        if before != after:
            effects.append(
                HintEffect(
                    kind=_kind(len(before), len(after)),
                    before=_dataset_files(before, urn_of),
                    after=_dataset_files(after, urn_of),
                )
            )
    return sorted(effects, key=lambda each: [one.urn for one in (*each.after, *each.before)])


def _kind(before: int, after: int) -> EffectKind:
    match before, after:
        case 0, _:
            return "added"
        case _, 0:
            return "dropped"
        case 1, 1:
            return "renamed"
        case _, 1:
            return "joined"
        case 1, _:
            return "split"
        case _:
            return "regrouped"


def _dataset_files(files: dict[str, int], urn_of: Callable[[str], Urn]) -> tuple[DatasetFiles, ...]:
    return tuple(DatasetFiles(urn=str(urn_of(name)), files=count) for name, count in files.items())
