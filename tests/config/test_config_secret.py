"""Secrets show nowhere: not in text, not in JSON, not in errors, not in a pickle."""

import copy
import json
import pickle
import traceback
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumos.config import ConfigurationError, ConnectionString, Secret, load
from lumos.config.secret import (
    guard_option,
    is_secret_name,
    mask_secret_text,
    mask_values,
    secret_values,
)
from lumos.config.settings import SparkSettings

# No word of the configuration or of an error contains six of these in a row.
SECRETS = st.text(alphabet="QXZ0123456789#?/@:%&= '\"\\{}$é☃", min_size=6, max_size=30).filter(
    lambda text: text.strip() == text and "***" not in text
)
# The file that a check of secrets writes anew for every example.
REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def pieces(secret: str) -> set[str]:
    """All runs of six characters: even a part of a secret is too much."""
    return {secret[at : at + 6] for at in range(len(secret) - 5)}


def assert_hidden(secret: str, shown: str) -> None:
    assert not [piece for piece in pieces(secret) if piece in shown]


@given(SECRETS)
def test_a_secret_shows_as_stars(text: str) -> None:
    secret = Secret(text)
    for shown in (
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r}",
        f"{secret:>3}",
        f"{[secret]}",
    ):
        assert_hidden(text, shown)
    assert secret.reveal() == text


def test_a_secret_is_a_frozen_value() -> None:
    secret = Secret("hush")
    assert secret == Secret("hush") != Secret("other")
    assert secret != "hush"
    assert secret != ConnectionString("hush")
    assert len({secret, Secret("hush"), ConnectionString("hush")}) == 2
    assert copy.deepcopy(secret) is copy.copy(secret) is secret
    with pytest.raises(AttributeError, match="frozen"):
        secret._value = "x"
    with pytest.raises(AttributeError, match="frozen"):
        del secret._value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_is_not_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps({"config": [Secret("hush")]}, protocol)


def test_a_secret_has_no_json_of_its_own() -> None:
    with pytest.raises(TypeError) as caught:
        msgspec.json.encode([Secret("hush")])
    assert "hush" not in str(caught.value)
    with pytest.raises(TypeError):
        json.dumps(Secret("hush"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://lumos:hush@db:5432/x", "postgresql://lumos:***@db:5432/x"),
        ("postgresql+psycopg://u:hush@h", "postgresql+psycopg://u:***@h"),
        ("redis://:hush@cache:6379/0", "redis://:***@cache:6379/0"),
        ("mongodb+srv://u:hush@h/db?retryWrites=true", "mongodb+srv://u:***@h/db?retryWrites=true"),
        ("postgresql://u:hush@a:1,b:2/x", "postgresql://u:***@a:1,b:2/x"),
        ("postgresql://u:hush@[::1]:5432/x", "postgresql://u:***@[::1]:5432/x"),
        ("postgresql://db/x", "postgresql://db/x"),
        ("sqlite:////var/lib/lumos.db", "sqlite:////var/lib/lumos.db"),
        ("https://hush@host/x", "https://***@host/x"),
        (
            "postgresql://h/x?user=u&password=hush&sslmode=require",
            "postgresql://h/x?user=***&password=***&sslmode=require",
        ),
        ("postgresql://h/x?sslkey=hush", "postgresql://h/x?sslkey=***"),
        ("snowflake://u:hush@a/d?token=hush&role=R", "snowflake://u:***@a/d?token=***&role=R"),
        ("postgresql://u:hu/sh@h/x", "***"),
        ("postgresql://u:hu@sh@h/x", "***"),
        ("postgresql://u:hu?sh@h/x", "***"),
        ("postgresql://u:hu#sh@h/x", "***"),
        ("postgresql://u:hu sh@h/x", "***"),
        ("postgresql://h/x?password=hu?sh", "***"),
        ("postgresql:/u:hush@h/x", "***"),
        ("host=db user=u password=hush", "***"),
        ("jdbc:postgresql://h/x?password=hush", "***"),
        ("AccountName=a;AccountKey=hush;", "***"),
        ("", "***"),
    ],
)
def test_an_address_shows_without_what_lets_one_in(text: str, shown: str) -> None:
    address = ConnectionString(text)
    assert str(address) == repr(address) == f"{address}" == shown
    assert address.reveal() == text


@given(SECRETS, st.booleans())
def test_no_password_shows_however_badly_the_address_is_written(secret: str, quoted: bool) -> None:
    password = quote(secret, safe="") if quoted else secret
    for text in (
        f"postgresql://user:{password}@host/db",
        f"postgresql://host/db?password={password}",
        f"postgresql://host/db?sslmode=require&sslkey={password}&x=1",
        f"https://{password.replace(':', '')}@host",
        f"://user:{password}@host",
        f"host=db password='{password}'",
        password + "@host",
    ):
        assert_hidden(password, str(ConnectionString(text)))
        assert_hidden(
            password, mask_secret_text(text) if "password" in text or "://" in text else ""
        )


SECRET_KEYS = """\
storage: {{backend: postgres, connection_string: {0}}}
platform_config:
  datahub: {{token: {0}}}
  atlas: {{server: "https://a", password: {0}}}
  shipyard: {{api_key: {0}, deep: {{clientSecret: {0}, credentials: [{0}]}}}}
sources:
  - {{type: s3, bucket: b, secret_access_key: {0}, session_token: {0}}}
  - {{type: postgres, host: h, password: {0}}}
  - {{type: kafka, bootstrap_servers: k, sasl_password: {0}}}
  - {{type: buoys, token: {0}, address: {1}}}
notifications: {{channels: {{chat: {0}}}}}
spark: {{config: {{spark.hadoop.fs.s3a.secret.key: {0}}}}}
"""


@REUSED
@given(secret=SECRETS)
@pytest.mark.usefixtures("registered")
def test_no_secret_of_a_file_shows(tmp_path: Path, secret: str) -> None:
    address = json.dumps(f"amqp://user:{secret}@host".replace("${", "$${"))
    file = tmp_path / "lumos.yaml"
    file.write_text(SECRET_KEYS.format(json.dumps(secret.replace("${", "$${")), address))
    settings = load(file, environment={})
    assert settings.spark.properties() == {"spark.hadoop.fs.s3a.secret.key": secret}
    for shown in (
        str(settings),
        repr(settings),
        json.dumps(settings.to_masked_dict(), ensure_ascii=False),
    ):
        assert_hidden(secret, shown)


@REUSED
@given(secret=SECRETS)
@pytest.mark.usefixtures("registered")
def test_no_secret_shows_in_an_error(tmp_path: Path, secret: str) -> None:
    text = SECRET_KEYS.format("[ '${SECRET}', 1 ]", "'${SECRET}'")
    text = text.replace("https://a", "https://user:${SECRET}@a")
    text += "state_uri: 's3://user:${SECRET}@bucket'\nscan: {max_removed_share: '${SECRET}'}\n"
    text += "environment: ${SECRET}\nplatform: ${SECRET}\nfeatures: {x: '${SECRET}'}\n"
    file = tmp_path / "lumos.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(file, environment={"SECRET": secret})
    assert len(caught.value.problems) > 10
    assert_hidden(secret, str(caught.value))
    assert_hidden(secret, "".join(traceback.format_exception(caught.value)))


def test_a_password_in_the_wrong_place_does_not_show_in_the_error(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text(
        "storage: postgresql://u:hush@h/x\n"
        "scan: {max_removed_share: 'postgresql://u:hush@h/x'}\n"
        "spark: {master: [hush]}\n"
        "environment: password=hush\n"
        "state_uri: https://hush@h/x\n"
        "sources: [{type: 'amqp://u:hush@h'}]\n"
        "platform: https://u:hush@h\n"
    )
    with pytest.raises(ConfigurationError) as caught:
        load(file, environment={})
    assert len(caught.value.problems) == 7
    assert "hush" not in str(caught.value)


@pytest.mark.usefixtures("parser")
def test_the_line_of_a_syntax_error_does_not_show(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text("sources:\n  - {type: s3, secret_key: hush: hush\n")
    with pytest.raises(ConfigurationError) as caught:
        load(file, environment={})
    assert "hush" not in "".join(traceback.format_exception(caught.value, chain=True))


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "db_password",
        "keyPassword",
        "sslpassword",
        "secret",
        "client-secret",
        "clientSecret",
        "token",
        "authToken",
        "api_key",
        "apiKey",
        "APIKey",
        "access.key",
        "fs.azure.account.key.store.blob.core.windows.net",
        "private_key",
        "credentials",
        "webhook",
        "sas_token",
    ],
)
def test_a_key_named_like_a_secret_is_one(key: str) -> None:
    assert is_secret_name(key)
    assert guard_option(key, "hush") == Secret("hush")


@pytest.mark.parametrize(
    "key", ["tokenizer", "max_tokens", "key", "primary_key", "passage", "host"]
)
def test_other_keys_are_no_secrets(key: str) -> None:
    assert not is_secret_name(key)
    assert guard_option(key, "hush") == "hush"


def test_an_address_with_a_password_is_a_secret_under_any_key() -> None:
    assert guard_option("target", "amqp://u:hush@h") == ConnectionString("amqp://u:hush@h")
    assert guard_option("dsn", "host=h password=hush") == ConnectionString("host=h password=hush")
    assert guard_option("target", "amqp://h") == "amqp://h"


def test_spark_options_are_revealed_for_spark_alone() -> None:
    spark = SparkSettings(config={"a.token": Secret("hush"), "b": True, "c": 1.5})
    assert "hush" not in repr(spark)
    assert spark.properties() == {"a.token": "hush", "b": "true", "c": "1.5"}


def test_a_secret_that_begins_with_another_one_is_masked_as_a_whole() -> None:
    environment = {"A_PASSWORD": "violet-otter", "B_PASSWORD": "violet-otter-9317"}
    values = secret_values(environment)
    assert mask_values("one violet-otter-9317, two violet-otter", values) == "one ***, two ***"
