"""What the page on the format shows is a snapshot."""

import re
from pathlib import Path

from lumos.snapshots.format.document import DATASETS, KINDS, SnapshotHeader
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.validation import validate

PAGE = Path(__file__).parents[3] / "docs/SNAPSHOT_FORMAT.md"


def test_the_example_can_be_read(tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    # Hashes are cut short on the page.
    example = re.sub(r"(?m)^( *content_hash|hashes): .*\n", "", block[1])
    (tmp_path / "example.yaml").write_text(example)
    assert {problem.path for problem in validate(tmp_path / "example.yaml")} == {"hashes"}
    with open_snapshot(tmp_path / "example.yaml") as snapshot:
        assert [entry.name for entry in snapshot.datasets()] == [
            "events.customer_signup",
            "customers",
        ]


def test_every_key_of_header_and_entries_is_explained() -> None:
    words = set(re.findall(r"`([a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    named = {*SnapshotHeader.__struct_fields__, *(kind.plural for kind in KINDS)}
    for kind in KINDS:
        named.update(kind.type.__struct_fields__)
    assert named - words == set()
    assert DATASETS.singular in words
