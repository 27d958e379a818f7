"""What people made in OpenMetadata is there again after a way through another catalog.

Two stubs of OpenMetadata stand for two servers, so this proves the adapters and the stubs;
`test_openmetadata_server.py` does the same with a real one.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .catalogs import CATALOGS, called
from .openmetadata_native import Native, differences, told
from .openmetadata_people import Estate
from .servers.http import Server
from .servers.openmetadata import Openmetadata as Stub
from .servers.spec import specification
from .test_lossless import restore, snapshot

WRITES = ("PUT", "PATCH", "POST", "DELETE")


@pytest.fixture
def estate() -> Iterator[Callable[[], Estate]]:
    """Opens servers, each with nothing in it."""
    with ExitStack() as stack:

        def opened() -> Estate:
            stub = Stub(specification())
            return Estate(stub, stack.enter_context(Server(stub)))

        yield opened


@pytest.mark.parametrize("via", ["local", "datahub-file", "datahub"], ids=called)
def test_what_people_made_is_there_again(
    estate: Callable[[], Estate], tmp_path: Path, via: str
) -> None:
    source, target = estate(), estate()
    Native(source.human).make()
    between = CATALOGS[via](tmp_path)
    first = snapshot(source.catalog(), tmp_path / "first.jsonl")
    restore(tmp_path / "first.jsonl", between)
    assert snapshot(between, tmp_path / "second.jsonl") == first
    restore(tmp_path / "second.jsonl", target.catalog())
    assert "\n".join(differences(told(source.human), told(target.human))) == ""
    assert snapshot(target.catalog(), tmp_path / "third.jsonl") == first
    assert source.stub.violations == target.stub.violations == []


def _writes(target: Estate) -> list[Any]:
    return [request for request in target.server.requests if request.method in WRITES]


def test_a_second_move_writes_nothing(estate: Callable[[], Estate], tmp_path: Path) -> None:
    source, target = estate(), estate()
    Native(source.human).make()
    snapshot(source.catalog(), tmp_path / "first.jsonl")
    restore(tmp_path / "first.jsonl", target.catalog())
    done = len(_writes(target))
    restore(tmp_path / "first.jsonl", target.catalog())
    assert [(each.method, each.path) for each in _writes(target)[done:]] == []
