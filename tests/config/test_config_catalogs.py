"""Catalogs behind an address: when two spellings are one, and which token goes where."""

import pytest

from lumos.config import Secret
from lumos.config.platforms import DatahubPlatform, OpenmetadataPlatform, normalize_address
from lumos.errors import MisuseError


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://GMS.Example/", "https://gms.example"),
        ("https://gms.example:443", "https://gms.example"),
        ("http://gms.example:443/", "http://gms.example:443"),
        ("http://gms.example:80/api/gms/", "http://gms.example/api/gms"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
    ],
)
def test_an_address_has_one_form(written: str, normal: str) -> None:
    assert normalize_address(written) == normal
    assert normalize_address(normal) == normal
    assert DatahubPlatform(gms_server=written).address == normal


@pytest.mark.parametrize("written", ["gms.example", "ftp://gms", "http://", "http://a:b", "x"])
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(MisuseError, match="'"):
        normalize_address(written)


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(MisuseError) as caught:
        DatahubPlatform().at("https://me:hush@gms.example")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "/", "/api", "/api/", "/api/v1", "/api/v1/"])
def test_the_path_of_openmetadatas_interface_may_be_given(path: str) -> None:
    address = OpenmetadataPlatform(server=f"https://om.example/catalog{path}").address
    assert address == "https://om.example/catalog"


def test_a_configured_token_goes_to_no_other_address() -> None:
    ours = DatahubPlatform(gms_server="https://gms.example", token=Secret("hush"), timeout=3)
    assert ours.at("https://GMS.example:443/") is ours
    other = ours.at("https://other.example")
    assert (other.address, other.timeout) == ("https://other.example", 3)
    assert other.secret({}) is None
    assert other.secret({"DATAHUB_GMS_TOKEN": "theirs"}) == Secret("theirs")
    assert ours.secret({"DATAHUB_GMS_TOKEN": "theirs"}) == Secret("hush")


def test_a_token_may_be_in_the_variable_that_the_catalogs_own_programs_read() -> None:
    catalog = OpenmetadataPlatform(server="https://om.example")
    assert catalog.secret({"OPENMETADATA_JWT_TOKEN": "hush"}) == Secret("hush")
    assert catalog.secret({"OPENMETADATA_JWT_TOKEN": ""}) is None


def test_blanks_around_a_token_are_not_part_of_it() -> None:
    assert DatahubPlatform(token=Secret(" hush\r\n")).secret({}) == Secret("hush")
    assert DatahubPlatform().secret({"DATAHUB_GMS_TOKEN": "hush\n"}) == Secret("hush")
    assert DatahubPlatform(token=Secret("\n")).secret({}) is None


@pytest.mark.parametrize("token", ["hu\nsh", "hüsh", "Bearer hush", "hu\x00sh"])
def test_what_no_header_takes_is_no_token_and_is_not_shown(token: str) -> None:
    catalog = DatahubPlatform(token=Secret(token))
    with pytest.raises(MisuseError, match="DATAHUB_GMS_TOKEN") as caught:
        catalog.secret({})
    assert "'token'" in str(caught.value)
    assert token not in str(caught.value)
