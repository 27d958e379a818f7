"""Settings that hold secrets are left out, others stay."""

import subprocess
import sys

import pytest

from lumos.formats.tables.interface import without_secrets


@pytest.mark.parametrize(
    "value",
    [
        "see https://me:hidden@lake.example/x",
        "redis://:hidden@cache.example",
        "https://me:hid:den@lake.example",
        "jdbc:postgresql://db.example/x?user=me&passwd=hidden",
        "AccountName=me;AccountKey=hidden",
        '{"user": "me", "password" : "hidden"}',
        "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
        "-----BEGIN RSA PRIVATE KEY-----",
        "https://ghp_hidden@git.example/x",
        "Basic bWU6aGlkZGVu",
        "Endpoint=sb://bus.example;SharedAccessKeyName=me;SharedAccessKey=hidden",
        "AKIAIOSFODNN7EXAMPLE",
    ],
)
def test_a_value_that_contains_a_secret_is_left_out(value: str) -> None:
    assert without_secrets({"note": value, "owner": "me"}) == {"owner": "me"}


@pytest.mark.parametrize(
    "value",
    [
        "https://lake.example:8080/orders?by=me@lake.example",
        "abfss://container@account.dfs.core.windows.net/orders",
        "struct<token:string,password:string>",
        '[{"field-id": 1, "names": ["password"]}]',
        "design=3",
        "basic settings",
        "",
    ],
)
def test_a_value_that_only_speaks_of_secrets_stays(value: str) -> None:
    assert without_secrets({"note": value}) == {"note": value}


@pytest.mark.parametrize(
    "name",
    ["api_key", "my.apikey", "pass", "db.pwd", "key-passphrase", "http.auth", "sasToken"],
)
def test_a_setting_that_is_called_like_a_secret_is_left_out(name: str) -> None:
    assert without_secrets({name: "x", "bypass.checks": "x", "auth.type": "x"}) == {
        "bypass.checks": "x",
        "auth.type": "x",
    }


def test_a_long_value_made_to_take_time_takes_none() -> None:
    program = (
        "from lumos.formats.tables.interface import without_secrets\n"
        "for part in (':', ':/', '://', '://:', 'token', 'bearer ', 'https://', 'https://x:', '-BEGIN '):\n"
        "    assert without_secrets({'note': '://' + part * 100_000})\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)
