"""Runs an import, or its rollback, in a process that may kill itself in the middle of it.

`python killed_import.py ACT FILE PLATFORM POINT OVERRIDES`: at the POINT-th call of any Python
function from the start of the act on, the process sends itself SIGKILL. Without one (0) it ends in
peace and prints at which call the journal was begun, and how many calls there were.
"""

import json
import os
import signal
import sys
from types import FrameType
from typing import Any

from lumos import Lumos
from lumos.snapshots import local_target, targets
from lumos.store.journal import ImportJournalWriter

calls = begun = 0


def main() -> None:
    act, file, platform, point, overrides = sys.argv[1:]
    last = int(point)
    # Small portions, so that there are many moments between two of them.
    targets.FILE_BATCH = 4  # type: ignore[misc]
    local_target.LocalTarget.batch = 4

    def watch(_frame: FrameType, event: str, _argument: Any) -> None:
        global calls
        if event == "call":
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)

    begin = ImportJournalWriter.begin

    def note(self: ImportJournalWriter, *words: Any, **facts: Any) -> Any:
        global begun
        begun = calls
        return begin(self, *words, **facts)

    ImportJournalWriter.begin = note  # type: ignore[method-assign]
    snapshots = Lumos(overrides=json.loads(overrides)).snapshot
    sys.setprofile(watch)
    if act == "rollback":
        snapshots.roll_back(file, platform=platform)
    else:
        snapshots.load(file, platform=platform, resume=act == "resume")
    sys.setprofile(None)
    print(begun, calls)  # noqa: T201


if __name__ == "__main__":
    main()
