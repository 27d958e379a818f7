"""DataHub's own golden and example files are migrated without loss, judged by DataHub's classes."""

import os
from pathlib import Path

import pytest

from catalogs.datahub.public_files import metadata_files, summary, sweep

_FOLDER = os.environ.get("LUMOS_DATAHUB_FILES", "")


@pytest.mark.slow
@pytest.mark.skipif(not _FOLDER, reason="LUMOS_DATAHUB_FILES names no folder of metadata files")
def test_every_aspect_of_every_public_file_is_migrated_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = list(sweep(metadata_files(Path(_FOLDER)), tmp_path))
    with capsys.disabled():
        print(f"\n{summary(results)}")  # noqa: T201
    assert results, f"There are no metadata files in {_FOLDER}."
    assert all(result.is_whole for result in results)
