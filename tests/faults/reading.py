"""Reads the data files of an archive or folder in a process of its own: `python -m faults.reading PATH`.

It says which file it reads before it does, so that a crash has a name, and then what came of it.
"""

import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from formats.material import MemoryFile
from guards import limit_memory, limited_time
from lumos.formats.columns import pack_columns, unpack_columns
from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile

EXTENSIONS = (".parquet", ".parq", ".orc", ".avro")


def data_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a jar, of a source distribution or of a folder that are data by their names."""
    if path.is_dir():
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            if file.name.endswith(EXTENSIONS):
                yield file.relative_to(path).as_posix(), file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as jar:
            for name in sorted(jar.namelist()):
                if name.endswith(EXTENSIONS):
                    yield name, jar.read(name)
    else:
        with tarfile.open(path) as packed:
            for member in packed:
                content = packed.extractfile(member) if member.name.endswith(EXTENSIONS) else None
                if content is not None:
                    yield member.name, content.read()


def outcome(name: str, data: bytes) -> str:
    """How many rows it has, or the code of the problem; anything else ends the process."""
    try:
        result = read_file(name.rpartition("/")[2], MemoryFile(data), column_stats=True)
    except UnreadableFile as problem:
        if not (problem.code.isidentifier() and problem.reason.endswith(".")):
            raise AssertionError(f"{problem.code}: {problem.reason}") from None
        return problem.code
    assert result is not None
    facts = result[1]
    assert facts.known.body
    assert facts.row_count is None or facts.row_count >= 0
    assert unpack_columns(pack_columns(facts.columns)) == facts.columns
    return str(facts.row_count)


def main(path: Path) -> None:
    limit_memory()
    for name, data in data_files(path):
        sys.stdout.write(f"{name}\t")
        sys.stdout.flush()
        with limited_time():
            sys.stdout.write(f"{outcome(name, data)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
