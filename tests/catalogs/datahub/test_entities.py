"""Any entity comes back from a metadata file as it is held, whatever it is called."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogs.strategies import (
    CARRIED,
    NAMES,
    OWNERS,
    PROPERTIES,
    TEXTS,
    URNS,
    WORDS,
    maybe,
    several,
)
from examples import examples
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntity, entity_urn

# The kinds that DataHub has, and the parts of their ids.
KINDS = {
    "tag": 1, "domain": 1, "data_product": 1, "term_group": 1, "pipeline": 3, "task": 4,
    "dashboard": 2, "chart": 2, "ml_model": 3, "query": 1,
}  # fmt: skip
RELATIONS = ("inputs", "outputs", "upstream", "charts", "datasets", "domain", "terms", "other")


@st.composite
def urns(draw: st.DrawFn) -> str:
    """Neutral URNs, some of them with a part too few."""
    kind = draw(st.sampled_from(list(KINDS)))
    count = draw(st.integers(max(1, KINDS[kind] - 1), KINDS[kind]))
    return entity_urn(kind, *(draw(WORDS) for _ in range(count)))


# The instance of a dataset is known only where the dataset is.
DATASETS = URNS.filter(lambda urn: "@" not in urn)
ENTITIES = st.builds(
    CatalogEntity,
    urn=urns(),
    name=maybe(TEXTS),
    display_name=maybe(TEXTS),
    description=maybe(TEXTS),
    parent=maybe(urns()),
    owners=several(OWNERS, unique=True),
    tags=NAMES,
    references=st.dictionaries(
        st.sampled_from(RELATIONS),
        several(DATASETS | urns() | TEXTS, min_size=1, unique=True),
        max_size=3,
    ),
    properties=PROPERTIES,
    raw=CARRIED,
)


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(first=ENTITIES, second=ENTITIES)
def test_any_entity_comes_back_as_it_is_held(first: CatalogEntity, second: CatalogEntity) -> None:
    second = msgspec.structs.replace(second, urn=first.urn, kind=first.kind)
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "estate.json")
        for item in (first, second):
            DatahubFile.at(path).put_item(item)
            file = DatahubFile.at(path)
            held = file.item_as_stored(item)
            assert file.get_item(CatalogEntity, item.urn) == held
            assert file.item_as_stored(held) == held
            assert list(file.items()) == [held]
