"""`make demo`: a lake and SQL models, a change that breaks one of them, and who hears of it."""

import csv
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import lake

PLACE = Path(__file__).resolve().parents[1] / "build" / "demo"
MODELS = Path(__file__).resolve().parent / "models"
LUMOS = Path(sys.executable).with_name("lumos")
BREAKING = 10
CONFIGURATION = """\
sources:
  - type: file
    path: lake
cost_model:
  currency: USD
  storage:
    local: {cost_per_gb_month: 0.023}
  compute:
    spark: {cost_per_core_hour: 0.19}
"""
# Core hours that the daily jobs behind each dataset use.
CORE_HOURS = {
    "user_clicks": 130, "orders": 24, "customer_360": 42, "revenue": 9, "page_views": 18,
    "churn_scores": 31,
}  # fmt: skip


def main() -> None:
    """Makes the demo's folder anew and tells the story there."""
    shutil.rmtree(PLACE, ignore_errors=True)
    tell(PLACE, run=run, say=say, today=datetime.now(UTC).date())
    show = [LUMOS, "show", "user_clicks", "--config", PLACE / "lumos.yaml"]
    command = shlex.join(os.path.relpath(word) if isinstance(word, Path) else word for word in show)
    say(f"Everything is in {os.path.relpath(PLACE)}. Try it yourself:")
    sys.stdout.write(f"\n{command}\n")
    sys.stdout.flush()
    if sys.stdout.isatty() and os.environ.get("SERVE", "1") != "0":
        say("The same in a browser, until Ctrl-C:")
        subprocess.run([LUMOS, "serve"], cwd=PLACE, check=False)


def tell(place: Path, *, run: Callable[..., None], say: Callable[..., None], today: date) -> None:
    """The story: `run` gets the words of each command and the exit code that belongs to it."""
    create(place, today)
    say("The lake of a web shop, which nobody described. Lumos finds what is in it:")
    run("ingest")
    say("The SQL models say which column is made from which, and comments in them who owns what:")
    run("lineage", "ingest", "models")
    say("Who reads the user ids of the clicks? Look at the expression, the file and the line:")
    run("lineage", "show", "user_clicks.user_id", "--downstream")
    say(
        "A week later user ids are numbers and orders have no discount. Nobody told the teams.",
        "The next scan does. Look under each BREAKING: the table, its team, the file and line.",
    )
    lake.change(place / "lake")
    run("ingest", "--exit-code", code=BREAKING)
    say(
        f"It ended with exit code {BREAKING}, so that a scheduler can stop before the models fail.",
        "Better: ask before the change. Who would break without the amount of orders?",
    )
    run("impact", "orders", "--drop", "amount")
    say("What does it cost a month? TOTAL has each table's part of everything upstream:")
    run("cost", "ingest", "core_hours.csv")
    run("cost", "top", "--by", "total", "-n", "6")
    say("All that is known leaves in one portable file, which can be checked anywhere:")
    run("export", "snapshot.json")
    run("validate", "snapshot.json")


def create(place: Path, today: date) -> None:
    """The lake, the models, the configuration, and what jobs used in the last 30 days."""
    lake.create(place / "lake")
    shutil.copytree(MODELS, place / "models")
    (place / "lumos.yaml").write_text(CONFIGURATION)
    with (place / "core_hours.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("dataset", "started_at", "ended_at", "engine", "quantity", "unit"))
        for back in range(30, 0, -1):
            start = datetime.combine(today - timedelta(days=back), time(3), UTC)
            end = start + timedelta(hours=1)
            for dataset, hours in CORE_HOURS.items():
                writer.writerow((dataset, start.isoformat(), end.isoformat(), "spark", hours,
                                 "core_hour"))  # fmt: skip


def run(*words: str, code: int = 0) -> None:
    """Shows a command and its output; an exit code that does not belong to the story ends it."""
    sys.stdout.write(f"\n$ lumos {shlex.join(words)}\n")
    sys.stdout.flush()
    done = subprocess.run([LUMOS, *words], cwd=PLACE, check=False)
    if done.returncode != code:
        sys.exit(f"lumos {words[0]} ended with {done.returncode} instead of {code}")


def say(*lines: str) -> None:
    """Lines between commands."""
    sys.stdout.write("".join(("\n", *(f"# {line}\n" for line in lines))))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
