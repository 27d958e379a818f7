"""Several writers of one store at once, through the store as a catalog."""

import multiprocessing
import random
from collections.abc import Callable

import pytest

from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Governance, Lineage, UpstreamEdge
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64

from .contract_catalogs import local_on

WRITERS = 3
ROUNDS = 5
DATASETS = 30


def entry(name: str, writer: int, round: int, schema: int) -> CatalogEntry:
    return CatalogEntry(
        urn=f"lumos://s3/x/{name}",
        name=name,
        platform="s3",
        schema=Schema(fields=(Field(name=f"c{schema}_{round}", type=INT64),)),
        governance=Governance(tags=(f"w{writer}r{round}",)),
        lineage=Lineage(upstream=(UpstreamEdge(urn=f"lumos://s3/y/{schema}"),)),
    )


def write_batches(url: str, writer: int, *, own: bool) -> None:
    """Writes the same schemas in another order than others, to its own datasets or to all."""
    chance = random.Random(writer)
    platform = local_on(url)
    for round in range(ROUNDS):
        numbers = list(range(DATASETS))
        chance.shuffle(numbers)
        with platform.batch():
            for number in numbers[:20]:
                name = f"w{writer}_{number}" if own else f"t{number}"
                platform.put(entry(name, writer, round, number))


def add_tags(url: str, writer: int) -> None:
    platform = local_on(url)
    for round in range(ROUNDS):
        tags = Governance(tags=(f"w{writer}r{round}",))
        platform.write(
            CatalogEntry(urn="lumos://s3/x/shared", name="shared", platform="s3", governance=tags)
        )


def run(action: Callable[..., None], *arguments: object, **options: object) -> list[int | None]:
    """Runs an action in several processes at once; gives how each of them ended."""
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=action, args=(*arguments, writer), kwargs=options)
        for writer in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False], ids=["datasets of their own", "the same datasets"])
def test_batches_at_once_get_through(empty_postgres: str, own: bool) -> None:
    platform = local_on(empty_postgres)
    assert run(write_batches, empty_postgres, own=own) == [0] * WRITERS
    found = {each.urn: each for each in platform.export()}
    assert len(found) == (WRITERS * DATASETS if own else DATASETS)


@pytest.mark.slow
def test_no_writer_takes_what_another_one_added(empty_postgres: str) -> None:
    platform = local_on(empty_postgres)
    assert run(add_tags, empty_postgres) == [0] * WRITERS
    found = platform.get("lumos://s3/x/shared")
    assert found is not None
    assert found.governance is not None
    assert len(found.governance.tags) == WRITERS * ROUNDS
