"""Reads damaged tables in a process of its own: `python -m formats.tables.mutations KIND SEED COUNT`.

It says what it damages before it reads, so that a crash has a name; a hang ends the process, and
so does a reading that wants more memory than a table of this size can need.
"""

import random
import sys
from collections.abc import Callable, Mapping

from formats.mutations import damaged
from guards import limit_memory, limited_time
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.delta.reader import DeltaReader
from lumos.formats.tables.hudi.reader import HudiReader
from lumos.formats.tables.iceberg.reader import IcebergReader
from lumos.formats.tables.interface import TableReader

from .delta_material import valid_tables
from .folder import MemoryFolder
from .hudi_tables import ON_READ, SCENARIOS, table_of
from .iceberg_tables import sample_tables


def _hudi_tables() -> dict[str, dict[str, bytes]]:
    return {
        f"{scenario} {version}": table_of(scenario, version).files
        for scenario in (*SCENARIOS, *ON_READ)
        for version in (6, 9)
    }


KINDS: Mapping[str, tuple[TableReader, Callable[[], dict[str, dict[str, bytes]]], str]] = {
    "delta": (DeltaReader(), valid_tables, "_delta_log/"),
    "hudi": (HudiReader(), _hudi_tables, ".hoodie/"),
    "iceberg": (IcebergReader(), sample_tables, "metadata/"),
}


def damage(
    files: dict[str, bytes], log: str, chance: random.Random
) -> tuple[dict[str, bytes], str]:
    """The table with one thing wrong in its log, and what that is."""
    changed = dict(files)
    names = sorted(name for name in files if name.startswith(log))
    if chance.random() < 0.9:
        # Empty ones are markers, whose bytes nobody reads.
        names = [name for name in names if files[name]]
    name, other = chance.choice(names), chance.choice(names)
    match chance.randrange(8):
        case 0:
            del changed[name]
            return changed, f"without {name}"
        case 1:
            changed[name] = b""
            return changed, f"{name} emptied"
        case 2:
            changed[other] = files[name]
            return changed, f"{other} with the bytes of {name}"
        case 3:
            changed[name], changed[other] = files[other], files[name]
            return changed, f"{name} and {other} exchanged"
        case 4:
            folder, slash, last = name.rpartition("/")
            twin = f"{folder}{slash}{chance.randrange(10)}{last}"
            changed[twin] = files[name]
            return changed, f"{twin} beside {name}"
        case _:
            changed[name] = damaged(files[name], chance)
            return changed, f"{name} damaged"


def read(reader: TableReader, files: dict[str, bytes], memory: bytes | None) -> None:
    """Reads a table and all that others ask of its facts; only the expected error is allowed."""
    folder = MemoryFolder(files)
    try:
        assert reader.signature(folder)
        facts, kept = reader.read(folder, memory, max_commits=100)
    except UnreadableFile as problem:
        if not (problem.code.isidentifier() and problem.reason.endswith(".")):
            raise AssertionError(f"{problem.code}: {problem.reason}") from None
        return
    assert facts.files >= 0
    assert facts.bytes >= 0
    assert facts.rows is None or facts.rows >= 0
    assert facts.content
    for past in facts.past:
        assert past.schema.full
        assert past.at.tzinfo is not None
    assert sum(file.size for file in reader.live(kept)) == facts.bytes
    # What it leaves behind does not mislead the next reading.
    assert reader.read(folder, kept, max_commits=100)[0] == facts


def main(kind: str, seed: int, count: int) -> None:
    reader, tables_of, log = KINDS[kind]
    tables = tables_of()
    whole = {
        name: reader.read(MemoryFolder(files), None, max_commits=100)[1]
        for name, files in tables.items()
    }
    limit_memory()
    chance = random.Random(seed)
    names = sorted(tables)
    for number in range(count):
        name = names[number % len(names)]
        files, what = damage(tables[name], log, chance)
        sys.stdout.write(f"{number}: {name}, {what}\n")
        sys.stdout.flush()
        with limited_time():
            read(reader, files, whole[name] if chance.random() < 0.3 else None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
