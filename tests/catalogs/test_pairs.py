"""An estate that moves from any catalog into any other one and back is the same, hash for hash.

`datahub` and `openmetadata` are stubs of the project's own here: what goes through them without
loss proves the adapters and the stubs, not a real server.
"""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from examples import examples
from lumos.catalogs import CatalogItem
from lumos.model.catalog import CatalogEntry

from .contract_catalogs import CATALOGS, Catalog, called
from .sample_inventory import items, rich
from .test_lossless import ESTATES, THINGS, by_name, emptied_catalog, fill, restore, snapshot

PAIRS = list(permutations(CATALOGS, 2))
FEW = settings(max_examples=3, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=examples(400) // len(PAIRS))

Emptied = Callable[[], Catalog]
Pair = tuple[Emptied, Emptied]


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: " to ".join(map(called, pair)))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Two catalogs, each emptied whenever it is asked for."""

    def emptied(name: str) -> Emptied:
        folder = tmp_path_factory.mktemp(name)
        return lambda: emptied_catalog(name, folder)

    here, there = request.param
    return emptied(here), emptied(there)


def moves_without_loss(pair: Pair, estate: list[CatalogEntry], things: list[CatalogItem]) -> None:
    here, there = pair
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, target = here(), there()
        # What a catalog cannot hold is in the store, which is not part of this.
        held = [source.item_as_stored(target.item_as_stored(item)) for item in things]
        fill(source, estate, held)
        first = snapshot(source, folder / "first.jsonl")
        restore(folder / "first.jsonl", target)
        second = snapshot(target, folder / "second.jsonl")
        back = here()
        restore(folder / "second.jsonl", back)
        third = snapshot(back, folder / "third.jsonl")
    assert first == second
    assert first == third


def test_an_estate_with_everything_in_it_moves_there_and_back(pair: Pair) -> None:
    moves_without_loss(pair, rich(), items())


@pytest.mark.slow
@FEW
@given(estate=ESTATES, things=THINGS)
def test_any_estate_moves_there_and_back(
    pair: Pair, estate: list[CatalogEntry], things: list[CatalogItem]
) -> None:
    moves_without_loss(pair, estate, list(by_name(things).values()))


@pytest.mark.slow
@MANY
@given(estate=ESTATES, things=THINGS)
def test_the_oddest_estates_move_there_and_back(
    pair: Pair, estate: list[CatalogEntry], things: list[CatalogItem]
) -> None:
    moves_without_loss(pair, [*estate, *rich()], [*by_name(things).values(), *items()])
