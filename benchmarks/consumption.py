"""What a process used up so far."""

import os
from pathlib import Path


def processor_seconds() -> float:
    """What this process and all below it have used so far."""
    used: dict[int, float] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(stat.parent.name)] = int(words[1])
        # Its own, and that of children which have ended.
        used[int(stat.parent.name)] = sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used[pid] for pid in family)


def peak_megabytes() -> float:
    """The most memory of this process so far; getrusage would tell that of its parent, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
