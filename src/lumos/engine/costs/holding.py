"""What stays due although it ends."""

from typing import TYPE_CHECKING

from lumos.config import Settings
from lumos.config.prices import committed_of
from lumos.engine.costs.wiring import Wiring
from lumos.model.pattern import DatasetPattern

if TYPE_CHECKING:
    from lumos.store import Store


def committed_nodes(store: "Store", settings: Settings, wiring: Wiring) -> list[int]:
    """The datasets and jobs that the configuration calls committed."""
    committed = committed_of(settings)
    if not committed:
        return []
    patterns = [
        DatasetPattern(text) for each in committed for text in (*each.datasets, *each.patterns)
    ]
    tags = {tag for each in committed for tag in each.tags}
    tagged = (
        {
            urn
            for urn, governance in store.aspects("governance").items()
            if tags.intersection(governance.tags)
        }
        if tags
        else set()
    )
    names = {urn: job.name for urn, job in wiring.jobs.items()}
    return [
        node
        for node, urn in enumerate(wiring.urns)
        if urn in tagged or any(each.matches(urn, names.get(urn, "")) for each in patterns)
    ]
