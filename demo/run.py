"""`make demo`: Lumos on a lake of its own, before and after a week of changes."""

import shutil
import subprocess
import sys
from pathlib import Path

import lake

PLACE = Path(__file__).resolve().parents[1] / "build" / "demo"
LUMOS = Path(sys.executable).with_name("lumos")


def main() -> None:
    """Creates the lake, scans it, changes it, scans again, and looks at what was recorded."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    say("A lake of a small web shop: clicks and orders in Parquet, reference data in CSV.")
    lake.create(PLACE / "lake")
    run("ingest", "lake")
    say("A week later: new columns, another type, a column gone, an upload that was cut off.")
    lake.change(PLACE / "lake")
    run("ingest", "lake")
    say("What the store knows now. These commands need no Spark.")
    run("list")
    run("history", "user_clicks")
    say(f"All of it lies in {PLACE.relative_to(Path.cwd())}. Go on there: lumos show orders")


def run(*words: str) -> None:
    """Shows a command and its output."""
    sys.stdout.write(f"\n$ lumos {' '.join(words)}\n")
    sys.stdout.flush()
    subprocess.run([LUMOS, *words], cwd=PLACE, check=True)


def say(text: str) -> None:
    """A line between commands."""
    sys.stdout.write(f"\n# {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
