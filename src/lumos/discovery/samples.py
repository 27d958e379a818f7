"""Samples of databases without schemas, taken on Spark in the light of what the store knows."""

from collections.abc import Callable
from functools import partial
from typing import Final

from lumos.config import Settings
from lumos.discovery.source_metadata import told_before
from lumos.model.discovery import Discovery
from lumos.sources import SampledSource
from lumos.sources.interface import EarlierSchema, EarlierSchemas
from lumos.store import Store

# What executors of a cluster may not have; all of it is Python alone, or does without the rest.
_LIBRARIES: Final = {"mongodb": ("bson", "pymongo", "dns")}


def sampled(
    source: SampledSource,
    known: EarlierSchemas,
    settings: Settings,
    progress: Callable[[str], None],
) -> Discovery:
    """What samples of a source show."""
    progress("Starting Spark")
    from lumos.discovery.sampling_job import spread
    from lumos.spark.session import spark_session

    spark = settings.spark
    with spark_session(
        master=spark.master,
        settings=spark.properties(),
        libraries=_LIBRARIES.get(source.kind, ()),
    ) as session:
        progress(f"Reading {source.address}")
        return source.sampled(partial(spread, session), known)


def known_datasets(store: Store, source: SampledSource, environment: str) -> EarlierSchemas:
    """What the store knows of a source's datasets, as far as they are there."""
    before = store.known(source=f"{source.identity}:{source.scope}")

    def known(path: str) -> EarlierSchema | None:
        urn = str(source.urn(path, environment=environment))
        there = before.get(urn)
        if there is None or there.state != "live":
            return None
        dataset = store.get(urn)
        if dataset.schema is None:
            return None
        return EarlierSchema(dataset.schema, told_before(dataset))

    return known
