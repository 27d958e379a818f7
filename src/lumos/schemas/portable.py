"""URNs of local datasets from the root of their source, the same in every checkout of a lake.

`lumos://file/home/ann/shop/lake/orders`, scanned as `lake`, is exported as `lumos://file/orders`.
URNs of buckets, clusters and databases are the same everywhere and stay as they are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from lumos.model.urn import Urn
from lumos.schemas.files import Described

_LOCAL: Final = "file"


class Recorded(NamedTuple):
    """A dataset of the store: where it was found, and whether it is still there."""

    urn: str
    source: str
    is_live: bool = True


def portable_urns(recorded: Iterable[Recorded]) -> dict[str, str]:
    """The URN in an export of each dataset.

    Where several local folders were scanned, the name of its folder comes first. Two datasets that
    would get the same URN keep their own.
    """
    datasets = list(recorded)
    roots = {each.source: _root(each.source) for each in datasets if each.is_live}
    labels = _labels({root for root in roots.values() if root is not None})
    found = {
        each.urn: each.urn if (root := roots.get(each.source)) is None
        else _from_root(Urn.parse(each.urn), root, labels[root])
        for each in datasets
    }  # fmt: skip
    live = Counter(found[each.urn] for each in datasets if each.is_live)

    def is_taken(each: Recorded) -> bool:
        return live[found[each.urn]] > (1 if each.is_live else 0)

    return {each.urn: each.urn if is_taken(each) else found[each.urn] for each in datasets}


def _root(source: str) -> tuple[str, ...] | None:
    """The segments of the folder that a local source scans: `file:/lake`, `file@eu:/lake`."""
    identity, _, path = source.partition(":")
    return tuple(path.strip("/").split("/")) if identity.partition("@")[0] == _LOCAL else None


def _labels(roots: set[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """What tells roots apart: the last folders of each, as few as it takes; none for one root."""
    if len(roots) == 1:
        return dict.fromkeys(roots, ())
    tails = Counter(root[-size:] for root in roots for size in range(1, len(root) + 1))
    return {
        root: next((root[-size:] for size in range(1, len(root)) if tails[root[-size:]] == 1), root)
        for root in roots
    }


def _from_root(urn: Urn, root: tuple[str, ...], label: tuple[str, ...]) -> str:
    if urn.platform != _LOCAL or urn.path[: len(root)] != root:
        return str(urn)
    # A root that is a dataset itself is called after its folder.
    path = (*label, *urn.path[len(root) :]) or root[-1:]
    return str(msgspec.structs.replace(urn, path=path))


def is_same(one: str, other: str) -> bool:
    """Whether one URN is the other without folders in front, as in an export."""
    first, second = Urn.parse(one), Urn.parse(other)
    longer, shorter = sorted((first, second), key=lambda urn: len(urn.path), reverse=True)
    tail = msgspec.structs.replace(longer, path=longer.path[-len(shorter.path) :])
    return tail == shorter and (longer.platform == _LOCAL or one == other)


def aligned(
    before: Mapping[str, Described], after: Mapping[str, Described]
) -> dict[str, Described]:
    """The first datasets under the URNs that the second ones have, also from older exports.

    Those wrote whole paths: a local dataset of one side alone is the one of the other side alone
    whose path ends alike, if there is one only.
    """
    old, new = _alone(before, after), _alone(after, before)
    pairs = [*_by_tail(old, new), *((tail, whole) for whole, tail in _by_tail(new, old))]
    olds, news = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    renamed = {a: b for a, b in pairs if olds[a] == news[b] == 1}
    return {
        renamed.get(urn, urn): msgspec.structs.replace(each, urn=renamed.get(urn, urn))
        for urn, each in before.items()
    }


def _alone(some: Mapping[str, Described], others: Mapping[str, Described]) -> dict[Urn, str]:
    urns = {Urn.parse(urn): urn for urn in some if urn not in others}
    return {urn: text for urn, text in urns.items() if urn.platform == _LOCAL}


def _by_tail(whole: Mapping[Urn, str], tails: Mapping[Urn, str]) -> Iterable[tuple[str, str]]:
    """Each URN with the one that has the longest end of its path."""
    for urn, text in whole.items():
        for start in range(1, len(urn.path)):
            tail = msgspec.structs.replace(urn, path=urn.path[start:])
            if tail in tails:
                yield text, tails[tail]
                break
