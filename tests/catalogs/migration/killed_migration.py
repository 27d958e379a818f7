"""Runs a migration in a process that may kill itself in the middle of it.

`python killed_migration.py ACT SOURCE TARGET POINT`: at the POINT-th call of any Python function
from the start on, the process sends itself SIGKILL. Without one (0) it ends in peace and prints how
many calls there were.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any

from lumos import Lumos
from lumos.snapshots import targets

calls = 0


def main() -> None:
    act, source, target, point = sys.argv[1:]
    last = int(point)
    # Small portions, so that there are many moments between two of them.
    targets.FILE_BATCH = 4  # type: ignore[misc]

    def watch(_frame: FrameType, event: str, _argument: Any) -> None:
        global calls
        if event == "call":
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)

    desk = Lumos().migration
    sys.setprofile(watch)
    if act == "rollback":
        desk.roll_back(source, target)
    else:
        desk.migrate(source, target, resume=act == "resume")
    sys.setprofile(None)
    print(calls)  # noqa: T201


if __name__ == "__main__":
    main()
