"""Cloud versions and schema versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.errors import MisuseError
from lumos.model.version import CloudVersion, SchemaVersion

NUMBERS = st.integers(0, 10**12)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_schema_version_comes_back_from_its_text(major: int, minor: int, patch: int) -> None:
    version = SchemaVersion(major, minor, patch)
    assert SchemaVersion.parse(str(version)) == version


@given(NUMBERS, st.text(max_size=5).filter(lambda prefix: not prefix[-1:].isdecimal()))
def test_a_cloud_version_comes_back_from_its_text(number: int, prefix: str) -> None:
    version = CloudVersion(number, prefix)
    assert CloudVersion.parse(str(version)) == version


def test_versions_start_at_one() -> None:
    assert str(CloudVersion()) == "S-1"
    assert str(SchemaVersion()) == "1.0.0"


@pytest.mark.parametrize(
    ("step", "after"),
    [("next_major", "3.0.0"), ("next_minor", "2.4.0"), ("next_patch", "2.3.5")],
)
def test_a_step_resets_what_is_smaller(step: str, after: str) -> None:
    assert str(getattr(SchemaVersion.parse("2.3.4"), step)()) == after


def test_a_cloud_version_steps_by_one_and_keeps_its_prefix() -> None:
    assert str(CloudVersion.parse("S-311").next(prefix="S-")) == "S-312"
    assert str(CloudVersion.parse("prod_v9").next(prefix="prod_v")) == "prod_v10"


def test_schema_versions_sort_by_number_and_not_by_text() -> None:
    versions = [SchemaVersion.parse(text) for text in ("10.0.0", "2.10.0", "2.9.1", "2.9.0")]
    assert [str(version) for version in sorted(versions)] == ["2.9.0", "2.9.1", "2.10.0", "10.0.0"]


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.3\n", "\u0661.0.0"])
def test_what_is_no_schema_version_is_refused(text: str) -> None:
    with pytest.raises(MisuseError, match=r"One looks like 2\.1\.0"):
        SchemaVersion.parse(text)


@pytest.mark.parametrize("text", ["", "S-", "S-1x"])
def test_what_is_no_cloud_version_is_refused(text: str) -> None:
    with pytest.raises(MisuseError, match="One looks like S-312"):
        CloudVersion.parse(text)
