"""Lumos beside the client libraries of Atlas and Amundsen, on real servers.

Each writes the same datasets to an empty server of its own: to Atlas, `apache-atlas` posts the same
entities, already built, and never looks what is there; to Amundsen, databuilder publishes a folder
of CSV files that is already written. Reading back is compared with requests for the same pages
whose answers are decoded and dropped. An Atlas takes tens of milliseconds for each column, so that
the calls for 5,000 datasets are counted on its stub, and the real one gets
LUMOS_BENCH_ATLAS_DATASETS of them. Other sizes: LUMOS_BENCH_DATASETS and LUMOS_BENCH_FIELDS.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.emission import _write
from benchmarks.snapshot import _estate
from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import column_name
from lumos.catalogs.atlas.platform import Atlas
from lumos.catalogs.atlas.reader import as_json
from lumos.catalogs.chunks import batched, chunked
from lumos.config.platforms import AmundsenPlatform, AtlasPlatform
from lumos.config.secret import ConnectionString, Secret
from lumos.model.catalog import CatalogEntry
from lumos.model.schema import Schema

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from catalogs.servers import atlas as stub
from catalogs.servers.http import Server
from servers import amundsen, atlas

DATASETS = int(os.environ.get("LUMOS_BENCH_DATASETS", "5000"))
IN_ATLAS = int(os.environ.get("LUMOS_BENCH_ATLAS_DATASETS", "200"))
FIELDS = int(os.environ.get("LUMOS_BENCH_FIELDS", "25"))
_LIBRARY = "apache-atlas==0.0.16"
_ENTITIES_PER_CALL = 250
_PAGE, _GUIDS = 1_000, 120
_TABLES = 500
_PUBLISH = """
import json, logging, sys, time
from collections import Counter
from pyhocon import ConfigFactory
from databuilder.publisher.neo4j_csv_unwind_publisher import Neo4jCsvUnwindPublisher
from neo4j import Session, Transaction
logging.disable(logging.CRITICAL)
calls = Counter()
for type in (Session, Transaction):
    def run(self, *arguments, _run=type.run, **options):
        calls["statements"] += 1
        return _run(self, *arguments, **options)
    type.run = run
uri, user, password, nodes, relations = sys.argv[1:]
publisher = Neo4jCsvUnwindPublisher()
publisher.init(ConfigFactory.from_dict({
    "node_files_directory": nodes, "relation_files_directory": relations, "neo4j_endpoint": uri,
    "neo4j_user": user, "neo4j_password": password, "neo4j_encrypted": False,
    "job_publish_tag": "bench",
}))
started = time.perf_counter()
publisher.publish()
seconds = round(time.perf_counter() - started, 1)
print(json.dumps({"seconds": seconds, "calls": calls["statements"]}))
"""


def measure() -> dict[str, Any]:
    """Seconds and calls of both, and their ratios."""
    parts = {"atlas_stub": _atlas_calls, "amundsen": _amundsen, "atlas": _atlas}
    wanted = os.environ.get("LUMOS_BENCH_PARTS", ",".join(parts)).split(",")
    figures = {name: part() for name, part in parts.items() if name in wanted}
    sizes = {"datasets": DATASETS, "datasets_in_atlas": IN_ATLAS, "fields_each": FIELDS}
    return {**sizes, **figures}


def _datasets(number: int) -> list[CatalogEntry]:
    return [
        msgspec.structs.replace(each, schema=Schema(fields=each.schema.fields[:FIELDS]))
        for each in _estate(number, changed=0)
        if each.schema is not None
    ]


def _timed(work: Callable[[], object], calls: Callable[[], int]) -> dict[str, Any]:
    before, started = calls(), time.perf_counter()
    work()
    return {"seconds": round(time.perf_counter() - started, 1), "calls": calls() - before}


def _with_ratios(figures: dict[str, dict[str, Any]]) -> dict[str, Any]:
    pairs = (("writing", "lumos", "library"), ("reading", "lumos_reading", "bare_paging"))
    ratios = {
        f"{what}_{key}_ratio": round(figures[ours][key] / figures[theirs][key], 2)
        for what, ours, theirs in pairs
        for key in ("seconds", "calls")
    }
    return {**figures, **ratios}


def _atlas_calls() -> dict[str, Any]:
    """The calls that the stub of Atlas gets, and those that the library would need."""
    entries = _datasets(DATASETS)
    with Server(stub.Atlas(), recording=False) as server:
        catalog = _catalog(server.address, stub.USER, stub.PASSWORD)
        caller = catalog._opened.server._client.caller
        catalog._opened.server.define_types()
        written = _timed(lambda: _write(catalog, entries), lambda: caller.calls)["calls"]
        read = _timed(lambda: list(catalog.export()), lambda: caller.calls)["calls"]
        library = sum(1 for _ in _atlas_bodies(catalog, entries))
    pages = ceil(DATASETS / _PAGE) + ceil(DATASETS / _GUIDS)
    return {
        "writing": {"lumos": written, "library": library, "ratio": round(written / library, 2)},
        "reading": {"lumos": read, "bare_paging": pages, "ratio": round(read / pages, 2)},
    }


def _catalog(address: str, user: str, password: str) -> Atlas:
    return Atlas(AtlasPlatform(server=address, user=user, password=Secret(password)))


def _atlas() -> dict[str, Any]:
    figures: dict[str, dict[str, Any]] = {}
    entries = _datasets(IN_ATLAS)
    with atlas.atlas_server(megabytes=2_500) as address:
        catalog = _catalog(address, atlas.USER, atlas.PASSWORD)
        caller = catalog._opened.server._client.caller

        def calls() -> int:
            return int(caller.calls)

        catalog._opened.server.define_types()
        figures["lumos"] = _timed(lambda: _write(catalog, entries), calls)
        assert sum(1 for _ in catalog.export()) == len(entries)
        figures["lumos_reading"] = _timed(lambda: list(catalog.export()), calls)
        client, answered = _atlas_client(address)
        figures["bare_paging"] = _timed(lambda: _page_atlas(client, address), answered)
    with atlas.atlas_server(megabytes=2_500) as address:
        catalog = _catalog(address, atlas.USER, atlas.PASSWORD)
        chunks = list(_atlas_bodies(catalog, entries))
        client, answered = _atlas_client(address)
        post = client.entity.create_entities
        figures["library"] = _timed(lambda: [post({"entities": each}) for each in chunks], answered)
    return _with_ratios(figures)


def _atlas_client(address: str) -> tuple[Any, Callable[[], int]]:
    """A client of the library, and a function that returns the number of its calls."""
    folder = Path(__file__).resolve().parents[1] / "build" / "atlas" / "client"
    if not folder.exists():
        command = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target")
        subprocess.run([*command, str(folder), _LIBRARY], check=True)
    sys.path.insert(0, str(folder))
    from apache_atlas.client.base_client import AtlasClient  # type: ignore[import-not-found]

    client = AtlasClient(address, (atlas.USER, atlas.PASSWORD))
    answers: Counter[str] = Counter()
    client.session.hooks["response"].append(lambda *_, **__: answers.update(("calls",)))
    return client, lambda: answers["calls"]


def _atlas_bodies(catalog: Atlas, entries: list[CatalogEntry]) -> Iterator[list[dict[str, Any]]]:
    """The entities of all datasets as somebody would post them, in as few calls."""
    server, rendered = catalog._opened.server, catalog._opened.reader.codec
    server.define_types()
    groups = []
    number = 0
    for entry in entries:
        entity, _ = rendered.render(entry)
        server.define_classifications(set(entity.classifications))
        number += 1
        reference = {"guid": f"-{number}", "typeName": types.DATASET}
        group = [{
            **reference, "attributes": {**entity.attributes, "qualifiedName": entry.urn},
            "classifications": as_json(entity.classifications.values()),
        }]  # fmt: skip
        for name, column in entity.columns.items():
            number += 1
            identity = {"qualifiedName": column_name(entry.urn, name)}
            group.append({
                "typeName": types.COLUMN, "guid": f"-{number}",
                "attributes": {**column.attributes, **identity},
                "relationshipAttributes": {"dataset": reference},
            })  # fmt: skip
        upstream = [
            {"typeName": types.DATASET, "uniqueAttributes": {"qualifiedName": urn}}
            if urn != entry.urn
            else reference
            for urn in entity.attributes["upstream"]
        ]
        number += 1
        attributes = {
            "qualifiedName": f"{entry.urn}#lineage", "name": entry.name, "inputs": upstream,
            "outputs": [reference],
        }  # fmt: skip
        process = {"typeName": types.PROCESS, "guid": f"-{number}", "attributes": attributes}
        groups.append([*group, process])
    for some in chunked(
        groups, max_parts=_ENTITIES_PER_CALL, max_bytes=1 << 30, size=lambda _: 0, count=len
    ):
        yield [body for group in some for body in group]


def _page_atlas(client: Any, address: str) -> None:
    """Request the pages and entities of all datasets."""
    base, last = f"{address}/api/atlas/v2", " "
    while True:
        criterion = {"attributeName": "lookup", "operator": ">", "attributeValue": last}
        query = {
            "typeName": types.DATASET, "excludeDeletedEntities": False, "limit": _PAGE,
            "entityFilters": {"condition": "AND", "criterion": [criterion]}, "sortBy": "lookup",
            "attributes": ["lookup"],
        }  # fmt: skip
        found = client.session.post(f"{base}/search/basic", json=query).json().get("entities") or []
        for some in batched([each["guid"] for each in found], _GUIDS):
            client.session.get(f"{base}/entity/bulk", params={"guid": some}).json()
        if len(found) < _PAGE:
            return
        last = found[-1]["attributes"]["lookup"]


def _amundsen() -> dict[str, Any]:
    from neo4j import ManagedTransaction, Session

    from lumos.catalogs.amundsen.file_platform import AmundsenFile
    from lumos.catalogs.amundsen.platform import Amundsen

    figures: dict[str, dict[str, Any]] = {}
    entries = _datasets(DATASETS)
    runs: Counter[str] = Counter()
    for type in (ManagedTransaction, Session):
        type.run = _counted(type.run, runs)  # type: ignore[method-assign]

    def calls() -> int:
        return runs["calls"]

    with amundsen.amundsen_server() as server:
        settings = AmundsenPlatform(
            server=server.server, neo4j_uri=ConnectionString(server.neo4j_uri),
            neo4j_user=amundsen.USER, neo4j_password=Secret(amundsen.PASSWORD), timeout=600,
        )  # fmt: skip
        catalog = Amundsen(settings)
        figures["lumos"] = _timed(lambda: _write(catalog, entries), calls)
        assert sum(1 for _ in catalog.export()) == len(entries)
        figures["lumos_reading"] = _timed(lambda: list(catalog.export()), calls)
        figures["bare_paging"] = _timed(lambda: _page_neo4j(server.neo4j_uri), calls)
        catalog.close()
    with amundsen.amundsen_server() as server, tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "csv"
        file = AmundsenFile.at(str(folder))
        with file.batch():
            list(file.put_many(entries, current={}))
        arguments = (server.neo4j_uri, amundsen.USER, amundsen.PASSWORD)
        folders = (str(folder / "nodes"), str(folder / "relationships"))
        figures["library"] = msgspec.json.decode(server.run(_PUBLISH, *arguments, *folders))
    return _with_ratios(figures)


def _counted(run: Callable[..., Any], runs: Counter[str]) -> Any:
    def counted(*arguments: Any, **options: Any) -> Any:
        runs["calls"] += 1
        return run(*arguments, **options)

    return counted


def _page_neo4j(uri: str) -> None:
    """Request all tables and columns with everything around them."""
    from neo4j import GraphDatabase

    around = "-[r]->(m) RETURN key, n.key, type(r), properties(r), labels(m), properties(m)"
    paths = ("(n:Table {key: key})", "(:Table {key: key})-[:COLUMN]->(n:Column)")
    login = (amundsen.USER, amundsen.PASSWORD)
    with GraphDatabase.driver(uri, auth=login) as driver, driver.session() as session:
        keys = sorted(row[0] for row in session.run("MATCH (n:Table) RETURN n.key"))
        for some in batched(keys, _TABLES):
            for path in paths:
                list(session.run(f"UNWIND $keys AS key MATCH {path}{around}", keys=some))
