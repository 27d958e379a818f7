"""State that was removed or damaged costs time, never truth."""

from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos

pytestmark = pytest.mark.usefixtures("spark", "workplace")


@pytest.mark.parametrize(
    "damage", ["parts removed", "parts damaged", "manifest damaged", "all removed"]
)
def test_lost_state_only_opens_files_again(tmp_path: Path, damage: str) -> None:
    for day in (1, 2, 3):
        write_parquet(tmp_path / f"lake/orders/dt=2024-01-0{day}/part-0.parquet", id=pa.int64())
    lumos = Lumos()
    before = lumos.ingest(tmp_path / "lake")
    assert lumos.ingest(tmp_path / "lake").summary.files_read == 0
    for file in Path(".lumos/lumos.state").rglob("*"):
        is_part = file.suffix == ".parquet"
        if file.is_dir() or (damage.startswith("parts") and not is_part):
            continue
        if damage.endswith("removed"):
            file.unlink()
        elif is_part == damage.startswith("parts"):
            file.write_bytes(b"damaged")
    after = lumos.ingest(tmp_path / "lake")
    assert after.summary.files_read == 3
    assert [each.change for each in after.datasets] == ["unchanged"]
    assert [each.urn for each in after.datasets] == [each.urn for each in before.datasets]
    assert lumos.ingest(tmp_path / "lake").summary.files_read == 0
