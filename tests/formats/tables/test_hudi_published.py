"""The tables that Hudi's own library is tested with, which Hudi itself wrote."""

import zipfile
from pathlib import Path

import pytest

from corpora import sdist

from .test_hudi_facts import facts_as_judged

SHA256 = "dc8e1f3405d262491b97e8f009bcae2cbd66279dd2a8300b738ecdc3d9cba51d"
# So many archives with tables were in it when it was pinned.
TABLES = 73
SCHEMAS = {"table_evo_add_col": 2, "table_evo_promotion": 2, "v9_timebasedkeygen_epochmillis": 2}


@pytest.mark.slow
def test_every_published_table_is_read_as_its_library_reads_it(tmp_path: Path) -> None:
    archives = sorted(sdist("hudi", "0.5.0", SHA256).rglob("crates/test/data/**/*.zip"))
    assert len(archives) == TABLES
    schemas: dict[str, int] = {}
    for number, archive in enumerate(archives):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(tmp_path / str(number))
        (properties,) = (tmp_path / str(number)).glob("[!_]*/.hoodie/hoodie.properties")
        facts = facts_as_judged(properties.parents[1])
        assert facts.schema.fields, archive
        assert not facts.remarks, archive
        schemas[archive.stem] = len(facts.past)
    assert {name: schemas[name] for name in SCHEMAS} == SCHEMAS
