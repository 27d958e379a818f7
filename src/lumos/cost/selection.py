"""Which datasets and jobs people mean when they ask what something costs."""

from lumos.annotations.selection import NothingMatches, found_urn, matching
from lumos.config import Settings
from lumos.config.prices import features_of
from lumos.cost.ledger import Books
from lumos.errors import MisuseError, UnknownName
from lumos.model.pattern import DatasetPattern
from lumos.store import Store
from lumos.store.errors import AmbiguousName, UnknownDataset


def node_meant(store: Store, books: Books, name: str) -> int:
    """The dataset or job that a URN or a name means; a wrong one is told with the nearest."""
    if name in books.places:
        return books.places[name]
    try:
        urn = found_urn(store, name)
    except UnknownDataset as unknown:
        return _job_meant(books, name, unknown)
    if urn not in books.places:
        raise MisuseError(f"{urn} no longer exists, so it has no current cost.")
    return books.places[urn]


def _job_meant(books: Books, name: str, unknown: UnknownDataset) -> int:
    """What is no dataset of the store: a job, or what lineage alone speaks of."""
    pattern = DatasetPattern(name)
    found = [
        node
        for node, urn in enumerate(books.graph.urns)
        if books.name(node) == name or pattern.matches(urn, books.name(node))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousName(name, tuple(books.urn(node) for node in found[:5]))
    raise unknown


def feature_members(store: Store, settings: Settings, books: Books, name: str) -> list[int]:
    """The datasets of a configured feature."""
    features = features_of(settings)
    if name not in features:
        if features:
            raise UnknownName("feature", name, features, listed="Features")
        raise MisuseError(
            f"No feature named '{name}': none is configured. Add it to lumos.yaml, for example "
            f"cost_calculation: {{features: {{{name}: {{patterns: ['{name}/*']}}}}}}"
        )
    feature = features[name]
    urns = [found_urn(store, each) for each in feature.datasets]
    for pattern in feature.patterns:
        found = matching(store, DatasetPattern(pattern))
        if not found:
            raise NothingMatches(pattern)
        urns += [each.urn for each in found]
    urns += [urn for tag in feature.tags for urn in books.labels.tagged(tag)]
    nodes = [books.places[urn] for urn in dict.fromkeys(urns) if urn in books.places]
    if not nodes:
        raise MisuseError(f"The feature '{name}' contains no existing dataset.")
    return nodes
