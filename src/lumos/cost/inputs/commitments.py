"""Committed costs, which are due even after their datasets are removed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.config import Settings
from lumos.config.prices import committed_of
from lumos.cost.inputs.nodes import Wiring
from lumos.model.pattern import DatasetPattern

if TYPE_CHECKING:
    from lumos.config.costs import Feature
    from lumos.store import Store


def committed_nodes(
    store: "Store", settings: Settings, wiring: Wiring
) -> tuple[set[int], tuple[str, ...]]:
    """The datasets and jobs that the configuration calls committed; which of its words mean none.

    A hold that is written wrongly would promise money that cannot be saved.
    """
    committed = committed_of(settings)
    nodes: set[int] = set()
    unmatched: list[str] = []
    words = [text for each in committed for text in (*each.datasets, *each.patterns)]
    for text, found in (*_matched(words, wiring), *_tagged(store, wiring, committed)):
        nodes |= found
        if not found:
            unmatched.append(text)
    remarks = tuple(
        f"'committed' in the configuration names {text}, which matches no dataset or job."
        for text in unmatched
    )
    return nodes, remarks


def _matched(words: list[str], wiring: Wiring) -> Iterator[tuple[str, set[int]]]:
    names = {urn: job.name for urn, job in wiring.jobs.items()}
    for text in words:
        pattern = DatasetPattern(text)
        yield (
            f"'{text}'",
            {
                node
                for node, urn in enumerate(wiring.urns)
                if pattern.matches(urn, names.get(urn, ""))
            },
        )


def _tagged(
    store: "Store", wiring: Wiring, committed: "tuple[Feature, ...]"
) -> Iterator[tuple[str, set[int]]]:
    tags = [tag for each in committed for tag in each.tags]
    governed = store.aspects("governance") if tags else {}
    for tag in tags:
        yield (
            f"the tag '{tag}'",
            {
                wiring.places[urn]
                for urn, governance in governed.items()
                if tag in governance.tags and urn in wiring.places
            },
        )
