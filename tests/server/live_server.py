"""`lumos serve` as a process of its own."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LiveServer:
    """A running server; `log` are the lines that it wrote so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.log: list[str] = []
        self.url = ""
        self._started = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._started.wait(180), self.log

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"Serving on (\S+)\. Stop", line):
                self.url = found[1]
                self._started.set()


@contextmanager
def live_server(folder: Path, *options: str) -> Iterator[LiveServer]:
    """Serve the store of a folder on any free port."""
    command = [sys.executable, "-m", "lumos", "serve", "--port", "0", *options]
    environment = {**os.environ, "LUMOS_SERVER": "", "LUMOS_TOKEN": ""}
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield LiveServer(process)
        finally:
            process.terminate()
            process.wait(30)
