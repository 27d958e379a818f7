"""What a page needs before its first command, and what happens between its commands."""

from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.terminal import Terminal
from files import write_text
from lumos import Lumos
from lumos.store import Store
from schema_histories import record


class SetUp:
    """The working folder of a page; a method of a page's own is a step of it."""

    def __init__(self, terminal: Terminal, request: pytest.FixtureRequest) -> None:
        self.terminal, self.request = terminal, request
        self.folder = terminal.root
        self.opened = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self.opened.close()

    def start(self) -> None:
        """Before the first command. Some pages begin with an empty folder."""

    def run(self, line: str) -> None:
        """Runs a command that has to succeed and is not shown."""
        output = self.terminal.run(line)
        assert self.terminal.code == 0, f"{line}\n{output}"

    def write(self, path: str, *lines: str) -> None:
        """Writes a text file."""
        write_text(self.folder / path, lines)

    def write_parquet(self, path: str, **columns: Any) -> None:
        """Writes a Parquet file."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), file)

    def set_variables(self, **variables: str) -> None:
        """Sets variables of the terminal and of the tasks that its Spark runs."""
        self.terminal.variables |= variables
        environment = self.request.getfixturevalue("spark").sparkContext.environment
        self.opened.enter_context(patch.dict(environment, variables))

    @cached_property
    def store(self) -> Store:
        """The store of the page, for datasets that are recorded without a scan."""
        lumos = Lumos(overrides={"storage.path": str(self.folder / ".lumos/lumos.db")})
        return lumos._store.create()

    def record(self, urn: str, schema: str, at: str) -> None:
        """Records that a dataset was seen with a schema at a time."""
        record(self.store, urn, schema, datetime.fromisoformat(at).replace(tzinfo=UTC))
