"""API tokens: hashed, expiring, revocable."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.access.service import InvalidToken, Tokens
from lumos.errors import MisuseError, UnknownName

NOW = datetime(2024, 1, 15, tzinfo=UTC)


@pytest.fixture
def lumos(tmp_path: Path) -> Lumos:
    lumos = Lumos(overrides={"storage.path": str(tmp_path / "store.db")})
    lumos.create_store()
    return lumos


def tokens_at(lumos: Lumos, at: datetime) -> Tokens:
    return Tokens(lumos.create_store, lumos.create_store, clock=lambda: at)


def test_a_token_is_recognised_by_its_secret_alone(lumos: Lumos) -> None:
    made = lumos.tokens.create("ci", role="write")
    found = lumos.tokens.authenticate(made.secret)
    assert (found.id, found.role) == (made.token.id, "write")
    for wrong in (made.secret[:-1], made.secret + "x", made.token.id, "", "lumos__", "lumos_x_y"):
        with pytest.raises(InvalidToken):
            lumos.tokens.authenticate(wrong)


def test_the_store_holds_no_secret(lumos: Lumos, tmp_path: Path) -> None:
    secret = lumos.tokens.create("ci").secret
    random = secret.split("_", 2)[2]
    lumos.database.engine.dispose()
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        text = "\n".join(connection.iterdump())
    assert "ci" in text
    assert random not in text


def test_a_token_expires(lumos: Lumos) -> None:
    made = tokens_at(lumos, NOW).create("ci", expires="12h")
    later = tokens_at(lumos, NOW + timedelta(hours=12))
    assert tokens_at(lumos, NOW + timedelta(hours=11)).authenticate(made.secret).name == "ci"
    with pytest.raises(InvalidToken, match="is expired"):
        later.authenticate(made.secret)
    assert [each.state for each in later.list().tokens] == ["expired"]
    assert not later.has_active()


def test_a_revoked_token_is_refused_at_once(lumos: Lumos) -> None:
    made = lumos.tokens.create("ci", expires="never")
    assert lumos.tokens.revoke("ci").changed
    assert not lumos.tokens.revoke(made.token.id).changed
    with pytest.raises(InvalidToken, match="is revoked"):
        lumos.tokens.authenticate(made.secret)


def test_the_last_use_is_recorded_every_few_minutes(lumos: Lumos) -> None:
    secret = tokens_at(lumos, NOW).create("ci").secret
    for minutes in (0, 1, 6):
        tokens_at(lumos, NOW + timedelta(minutes=minutes)).authenticate(secret)
        (token,) = tokens_at(lumos, NOW).list().tokens
        assert token.last_used_at == NOW + timedelta(minutes=0 if minutes < 5 else minutes)


def test_wrong_names_roles_and_lifetimes_are_refused(lumos: Lumos) -> None:
    with pytest.raises(UnknownName, match="No role named 'root'"):
        lumos.tokens.create("ci", role="root")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="'0d' is not a lifetime"):
        lumos.tokens.create("ci", expires="0d")
    with pytest.raises(MisuseError, match="The name of a token"):
        lumos.tokens.create(" ")
    with pytest.raises(UnknownName, match="No token named 'nobody'"):
        lumos.tokens.revoke("nobody")


def test_tokens_of_the_same_name_are_revoked_by_id(lumos: Lumos) -> None:
    first, second = lumos.tokens.create("ci"), lumos.tokens.create("ci")
    with pytest.raises(MisuseError, match=f"Give the id of one: {first.token.id}"):
        lumos.tokens.revoke("ci")
    assert lumos.tokens.revoke(second.token.id).token.state == "revoked"
