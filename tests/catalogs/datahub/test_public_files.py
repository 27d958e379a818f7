"""DataHub's own golden and example files are migrated without loss, judged by DataHub's classes.

Their exports are valid snapshots.
"""

import os
from pathlib import Path

import pytest

from catalogs.datahub.public_files import invalid_exports, metadata_files, summary, sweep

_FOLDER = os.environ.get("LUMOS_DATAHUB_FILES", "")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _FOLDER, reason="LUMOS_DATAHUB_FILES names no folder of metadata files"),
]


def test_every_aspect_of_every_public_file_is_migrated_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = list(sweep(metadata_files(Path(_FOLDER)), tmp_path))
    with capsys.disabled():
        print(f"\n{summary(results)}")  # noqa: T201
    assert results, f"There are no metadata files in {_FOLDER}."
    assert all(result.is_whole for result in results)


def test_every_public_file_is_exported_to_a_valid_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = metadata_files(Path(_FOLDER))
    invalid = list(invalid_exports(files, tmp_path))
    with capsys.disabled():
        print(f"\n{len(files) - len(invalid)} of {len(files)} exports are valid.")  # noqa: T201
    assert files, f"There are no metadata files in {_FOLDER}."
    assert invalid == []
