"""Runs the commands of a page as a terminal would, those of Lumos in this process."""

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final
from unittest.mock import patch

import typer.main

from lumos.cli import main as cli

# What the working folder is called in pages.
SHOWN_FOLDER: Final = "/data"
_REMARK: Final = re.compile(r"\s+# .*$")
_QUOTED: Final = re.compile(r"'[^']*'")
_EXPANDED: Final = re.compile(r"[$*]|&&")
_made_once = cache(typer.main.get_command)


class Terminal:
    """A working folder, variables, and the exit code of the last command."""

    def __init__(self, folder: Path, commands: Path) -> None:
        self.root = self.folder = folder
        self.commands = commands
        self.in_process = True
        self.code = 0
        # Addresses of servers, and what pages call them.
        self.addresses: dict[str, str] = {}
        self.variables = {
            "HOME": str(folder),
            "LOGNAME": "jane",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        commands.mkdir()
        script = commands / "lumos"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lumos "$@"\n', encoding="utf-8")
        script.chmod(0o755)

    def run(self, line: str) -> str:
        """What a command prints, with the working folder called as pages call it."""
        line = self.with_addresses(_REMARK.sub("", line))
        words = shlex.split(line)
        if words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve()
            return ""
        if words[0] == "export":
            self.variables |= dict(word.split("=", 1) for word in words[1:])
            return ""
        is_program = words[0] == "lumos" or (words[0] == "python" and words[1].endswith(".py"))
        if not (is_program and self.in_process) or _EXPANDED.search(_QUOTED.sub("", line)):
            return self._named(self._shell(line))
        command, operator, rest = _parts(line)
        output, errors = self._program(shlex.split(command), apart=bool(operator))
        if operator == ">":
            (self.folder / rest.strip()).write_text(output, encoding="utf-8")
            return self._named(errors)
        if operator == "|":
            return self._named(errors + self._shell(rest, given=output))
        return self._named(output)

    def _program(self, words: list[str], *, apart: bool) -> tuple[str, str]:
        """What a program prints: together as on a screen, or errors apart from results."""
        with self._here(), tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            streams = [
                io.TextIOWrapper(
                    os.fdopen(os.dup(file.fileno()), "wb"), "utf-8", write_through=True
                )
                for file in (out, err if apart else out)
            ]
            with (
                patch.object(sys, "argv", words),
                patch.object(sys, "stdout", streams[0]),
                patch.object(sys, "stderr", streams[1]),
                patch.object(typer.main, "get_command", _made_once),
            ):
                try:
                    self.code = 0
                    cli.main() if words[0] == "lumos" else runpy.run_path(words[1])
                except SystemExit as leaving:
                    self.code = int(leaving.code or 0)
                # The installed command waits for messages that are being sent.
                cli._wait_for_threads()
                for stream in streams:
                    stream.close()
            out.seek(0)
            err.seek(0)
            return out.read().decode(), err.read().decode()

    def _shell(self, line: str, *, given: str = "") -> str:
        with self._here():
            done = subprocess.run(
                ["/bin/bash", "-c", f"(exit {self.code})\n{line}"],
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        self.code = done.returncode
        return done.stdout

    @contextmanager
    def _here(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            with patch.dict(os.environ, self.variables):
                yield
        finally:
            os.chdir(before)

    def with_addresses(self, text: str) -> str:
        """The text with the addresses of servers in the place of what pages call them."""
        for address, shown in self.addresses.items():
            text = text.replace(shown, address)
        return text

    def _named(self, text: str) -> str:
        """The text as pages write it: the names of folder and servers, tables as wide as with them."""
        names = {str(self.root): SHOWN_FOLDER, **self.addresses}
        found = "|".join(map(re.escape, names))
        cell = re.compile(rf"^(.*?(?:{found})\S* {{2,}})\S", re.MULTILINE)
        paragraphs = text.split("\n\n")
        for number, paragraph in enumerate(paragraphs):
            if first := cell.search(paragraph):
                paragraphs[number] = _narrowed(paragraph, len(first[1]), found, names)
        return re.sub(found, lambda name: names[name[0]], "\n\n".join(paragraphs))


def _narrowed(paragraph: str, end: int, found: str, names: dict[str, str]) -> str:
    """The lines of a table with the column that ends there as wide as its text with these names."""
    lines = paragraph.split("\n")
    rows = {
        number: re.sub(found, lambda name: names[name[0]], line[:end]).rstrip()
        for number, line in enumerate(lines)
        if len(line) > end and not line[end - 2 : end].strip()
    }
    width = max(map(len, rows.values())) + 2
    for number, row in rows.items():
        lines[number] = row.ljust(width) + lines[number][end:]
    return "\n".join(lines)


def _parts(line: str) -> tuple[str, str, str]:
    """A command up to the first operator of the shell outside of quotes, the operator, the rest."""
    quote = ""
    for number, mark in enumerate(line):
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        elif mark in "|>":
            return line[:number], mark, line[number + 1 :]
    return line, "", ""
