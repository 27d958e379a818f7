"""Imports into a real Amundsen whose connections break, by processes that are killed."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalogs.test_airtight_stub import FACTS, FEW, MANY, estate
from lumos import Lumos
from lumos.catalogs.amundsen.platform import Amundsen
from lumos.config.platforms import AmundsenPlatform
from lumos.config.secret import ConnectionString, Secret
from lumos.model.catalog import GlossaryTerm
from lumos.snapshots.format.writer import write_snapshot
from servers.amundsen import PASSWORD, USER, AmundsenServer, amundsen_server

from .bolt_proxy import BoltProxy, Outcome, bolt_proxy

pytestmark = pytest.mark.slow
KILLS = 10
CUT: tuple[Outcome, Outcome] = ("dropped", "unanswered")


@pytest.fixture(scope="module")
def server() -> Iterator[AmundsenServer]:
    with amundsen_server() as started:
        yield started


@pytest.fixture(scope="module")
def proxy(server: AmundsenServer) -> Iterator[BoltProxy]:
    with bolt_proxy(server.neo4j_uri) as proxy:
        yield proxy


@pytest.fixture
def folder(server: AmundsenServer, proxy: BoltProxy, workplace: Path) -> Path:
    """A folder whose catalog is an empty Amundsen behind the proxy."""
    from neo4j import GraphDatabase

    with GraphDatabase.driver(server.neo4j_uri, auth=(USER, PASSWORD)) as driver:
        driver.execute_query("MATCH (n) CALL { WITH n DETACH DELETE n }")
    (workplace / "lumos.yaml").write_text(
        f"platform: amundsen\nplatform_config:\n  amundsen:\n    server: {server.server}\n"
        f"    neo4j_uri: {proxy.uri}\n    neo4j_user: {USER}\n    neo4j_password: {PASSWORD}\n"
    )
    proxy.forget()
    return workplace


def snapshot_in(folder: Path, size: int) -> Path:
    snapshot = folder / "estate.jsonl"
    write_snapshot(snapshot, FACTS, estate(size), glossary=[GlossaryTerm(name="Order")])
    return snapshot


def everything_is_there(server: AmundsenServer, size: int) -> None:
    login = {"neo4j_user": USER, "neo4j_password": Secret(PASSWORD)}
    uri = ConnectionString(server.neo4j_uri)
    catalog = Amundsen(AmundsenPlatform(server=server.server, neo4j_uri=uri, timeout=300, **login))
    assert {entry.urn: entry for entry in catalog.export()} == {
        entry.urn: entry for entry in estate(size)
    }
    assert list(catalog.items()) == [GlossaryTerm(name="Order")]
    catalog.close()


@pytest.mark.parametrize("size", [FEW, MANY])
def test_all_arrives_where_a_third_of_the_transactions_fail(
    folder: Path, server: AmundsenServer, proxy: BoltProxy, size: int
) -> None:
    snapshot = snapshot_in(folder, size)
    chance = random.Random(size)
    proxy.decide = lambda _: chance.choice(CUT) if chance.random() < 0.3 else "forwarded"
    report = Lumos().snapshot.load(snapshot, platform="amundsen")
    assert not report.refused
    assert proxy.cut > 0.15 * proxy.commits
    everything_is_there(server, size)


def test_an_import_of_5000_that_is_killed_ten_times_arrives(
    folder: Path, server: AmundsenServer, proxy: BoltProxy
) -> None:
    snapshot = snapshot_in(folder, MANY)
    chance = random.Random(26)
    kills = 0
    is_done = False
    while not is_done:
        words = ["import", str(snapshot), "--platform", "amundsen"]
        resume = ["--resume"] if (folder / ".lumos").exists() and is_begun(snapshot) else []
        child = subprocess.Popen(
            [sys.executable, "-m", "lumos", *words, *resume], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, cwd=folder, env=os.environ,
        )  # fmt: skip
        proxy.forget()
        at = chance.randint(1, 5) if kills < KILLS else 0

        def decide(number: int, child: subprocess.Popen[str] = child, at: int = at) -> Outcome:
            if number == at:
                child.send_signal(signal.SIGKILL)
                child.wait()
                return chance.choice(CUT)
            return chance.choice(CUT) if chance.random() < 0.3 else "forwarded"

        proxy.decide = decide
        _, text = child.communicate()
        assert child.returncode in (0, -signal.SIGKILL), text
        kills += child.returncode == -signal.SIGKILL
        is_done = child.returncode == 0
    assert kills == KILLS
    everything_is_there(server, MANY)


def is_begun(snapshot: Path) -> bool:
    lumos = Lumos()
    run = lumos._store.open().journal.open_run(lumos.snapshot._catalogs.named("amundsen").name)
    return run is not None and run.file.endswith(snapshot.name)
