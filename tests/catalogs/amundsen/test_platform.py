"""The server's settings, and what is said if it cannot be reached."""

import socket

import pytest
from neo4j.exceptions import IncompleteCommit

from lumos.catalogs.amundsen.neo4j_graph import Neo4jGraph
from lumos.catalogs.amundsen.platform import Amundsen
from lumos.config.platforms import AmundsenPlatform
from lumos.config.secret import ConnectionString, Secret
from lumos.errors import CatalogUnreachable, MisuseError


def settings(port: int, **more: object) -> AmundsenPlatform:
    uri = ConnectionString(f"bolt://127.0.0.1:{port}")
    return AmundsenPlatform(
        server=f"http://127.0.0.1:{port}", neo4j_uri=uri, neo4j_password=Secret("hidden"), timeout=1, **more
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_neo4j_has_to_be_configured() -> None:
    with pytest.raises(MisuseError, match=r"platform_config\.amundsen\.neo4j_uri"):
        Amundsen(AmundsenPlatform(server="http://amundsen.example:5002"))
    with pytest.raises(MisuseError, match="'server' and 'neo4j_uri'"):
        Amundsen(None)


def test_an_address_is_the_configured_one_or_unknown() -> None:
    configured = settings(7687)
    assert (
        Amundsen.at("http://127.0.0.1:7687/", configured).name == "amundsen:http://127.0.0.1:7687"
    )
    with pytest.raises(MisuseError, match="its Neo4j is unknown"):
        Amundsen.at("http://elsewhere.example", configured)


def test_a_server_that_does_not_answer_is_named(closed_port: int) -> None:
    catalog = Amundsen(settings(closed_port))
    with pytest.raises(CatalogUnreachable, match=rf"http://127.0.0.1:{closed_port}") as service:
        catalog.check()
    with pytest.raises(CatalogUnreachable, match=rf"bolt://127.0.0.1:{closed_port}") as neo4j:
        catalog.count()
    assert "hidden" not in f"{service.value}{neo4j.value}"
    catalog.close()


@pytest.mark.parametrize("scheme", ["https", "bolt+ssc"])
def test_only_schemes_of_neo4j_with_verified_certificates_are_accepted(scheme: str) -> None:
    uri = ConnectionString(f"{scheme}://graph.example:7687")
    with pytest.raises(MisuseError, match=r"must start with bolt://.*ca_file"):
        Amundsen(AmundsenPlatform(server="http://127.0.0.1:1", neo4j_uri=uri))


@pytest.mark.parametrize("failures", [0, 3, 11])
def test_a_stub_session_that_does_not_confirm_its_commit_is_repeated(
    monkeypatch: pytest.MonkeyPatch, closed_port: int, failures: int
) -> None:
    attempts = commit_through_stub_sessions(monkeypatch, closed_port, failures)
    assert attempts == failures + 1


def test_a_commit_that_stub_sessions_never_confirm_is_reported(
    monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    with pytest.raises(CatalogUnreachable):
        commit_through_stub_sessions(monkeypatch, closed_port, 12)


def commit_through_stub_sessions(monkeypatch: pytest.MonkeyPatch, port: int, failures: int) -> int:
    """Clean up through sessions that lose the connection during the first commits."""
    attempts = 0

    class StubSession:
        def __enter__(self) -> "StubSession":
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

        def execute_write(self, _work: object) -> None:
            nonlocal attempts
            attempts += 1
            if attempts <= failures:
                raise IncompleteCommit("The connection was lost.")

    graph = Neo4jGraph(settings(port), platform="amundsen")
    monkeypatch.setattr(graph._driver, "session", StubSession)
    try:
        graph.clean_up()
    finally:
        graph.close()
    return attempts
