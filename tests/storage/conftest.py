"""Facts about S3 that the suites of this folder share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_aws_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody has said anything about AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
