"""Opening the store of a configuration."""

import pytest

from lumos import Lumos
from lumos.store import Store, StoreNotUsable, StoreUnreachable, configured
from lumos.store.configured import create_when_reachable

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "_RETRY_SECONDS", 0.0)


def test_a_server_that_is_still_starting_is_waited_for() -> None:
    attempts = iter(
        [StoreUnreachable("postgresql://db"), StoreUnreachable("postgresql://db"), None]
    )

    def create() -> Store:
        if (problem := next(attempts)) is not None:
            raise problem
        return Lumos().create_store()

    assert create_when_reachable(create).jobs.counts() == {}
    assert list(attempts) == []


def test_a_server_that_never_answers_is_an_error_in_the_end() -> None:
    lumos = Lumos(
        overrides={
            "storage.backend": "postgres",
            "storage.connection_string": "postgresql://nobody@127.0.0.1:1/shop",
        }
    )
    with pytest.raises(StoreUnreachable, match="Check that the server is running"):
        create_when_reachable(lumos.create_store, seconds=0)


def test_a_rejected_login_is_not_waited_for(postgres: str) -> None:
    server, _, _ = postgres.rpartition("/")
    lumos = Lumos(
        overrides={
            "storage.backend": "postgres",
            "storage.connection_string": f"{server}/no_such_database",
        }
    )
    with pytest.raises(
        StoreNotUsable, match=r"refused the connection: .*no_such_database"
    ) as error:
        create_when_reachable(lumos.create_store)
    assert not isinstance(error.value, StoreUnreachable)
