"""Reads damaged files in a process of its own: `python -m formats.mutations SEED COUNT [ENDING]`.

It says which file it reads before it does, so that a crash has a name; a hang ends the process.
"""

import random
import sys

from guards import limit_memory, limited_time
from lumos.formats.columns import pack_columns, unpack_columns
from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile

from .material import MemoryFile, valid_files

ODD_BYTES = (0x00, 0xFF, 0x7F, 0x80, 0x22, 0x7B, 0x5B, 0x0A)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some flipped, replaced, cut, moved, repeated or put in."""
    it = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        if not it:
            break
        # Footers lie at the end, headers at the beginning.
        near_end = len(it) - 1 - int(chance.expovariate(1 / 200))
        at = chance.choice((chance.randrange(len(it)), max(0, near_end)))
        match chance.randrange(8):
            case 0:
                it[at] ^= 1 << chance.randrange(8)
            case 1:
                it[at] = chance.randrange(256)
            case 2:
                it[at] = chance.choice(ODD_BYTES)
            case 3:
                del it[at:]
            case 4:
                del it[at : at + chance.randrange(1, 30)]
            case 5:
                it[at:at] = chance.randbytes(chance.randrange(1, 10))
            case 6:
                source = chance.randrange(len(it))
                it[at : at + 20] = it[source : source + 20]
            case 7:
                it[at:at] = it[at : at + 50] * chance.randrange(1, 50)
    return bytes(it)


def read(name: str, data: bytes) -> None:
    """Reads a file and all that others ask of its facts; only the expected error is allowed."""
    try:
        result = read_file(name, MemoryFile(data), column_stats=True)
    except UnreadableFile as problem:
        if not (problem.code.isidentifier() and problem.reason.endswith(".")):
            raise AssertionError(f"{problem.code}: {problem.reason}") from None
        return
    if result is not None:
        facts = result[1]
        assert facts.known.body
        assert facts.known.full
        assert facts.row_count is None or facts.row_count >= 0
        assert unpack_columns(pack_columns(facts.columns)) == facts.columns


def main(seed: int, count: int, ending: str = "") -> None:
    chance = random.Random(seed)
    files = valid_files()
    names = [name for name in files if name.endswith(ending)]
    limit_memory()
    for number in range(count):
        # Every format and compression has its turn.
        name = names[number % len(names)]
        data = damaged(files[name], chance)
        called = chance.choice(names) if chance.random() < 0.1 else name
        sys.stdout.write(f"{number}: {name} called {called}, {len(data)} bytes\n")
        sys.stdout.flush()
        with limited_time():
            read(called, data)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
