"""`make demo-cost`: what a web shop's data costs, and what removing some of it saves."""

import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import estate

PLACE = Path(__file__).resolve().parents[1] / "build" / "demo-cost"
LUMOS = Path(sys.executable).with_name("lumos")


def main() -> None:
    """Creates the datasets, imports lineage, usage and metering, and reports the costs."""
    shutil.rmtree(PLACE, ignore_errors=True)
    today = datetime.now(UTC).date()
    say("A web shop: 19 datasets, 13 jobs, their lineage, reads and core hours.")
    estate.create(PLACE, today=today)
    run("ingest", quietly=True)
    run("lineage", "ingest", "openlineage.ndjson", quietly=True)
    run("usage", "ingest", "usage.csv", quietly=True)
    run("enrich", "--file", "enrich.yaml", quietly=True)
    run("cost", "ingest", "metering.csv", quietly=True)
    for month in months_before(today, 4):
        run("cost", "record", "--period", month, quietly=True)
    say("Which datasets cost most, including everything upstream?")
    run("cost", "top", "-n", "8")
    say("Why do recommendations cost so much?")
    run("cost", "report", "recommendations")
    say("Which team spends the money, and for which team's datasets?")
    run("cost", "by", "team")
    say("Nobody reads the old funnel. What does removing it save?")
    run("cost", "savings", "legacy_funnel")
    say("And removing the machine learning feature, with everything that only it uses?")
    run("cost", "savings", "--feature", "machine_learning")
    say("What if the clicks were in another storage class and features were built half as often?")
    supposed = ("--move", "raw/clicks=glacier", "--schedule", "build_features=0.5x")
    run("cost", "top", "-n", "3", *supposed)
    run("cost", "page", "-o", "cost.html")
    say(f"Open {(PLACE / 'cost.html').relative_to(Path.cwd())} in a browser.")


def months_before(today: date, count: int) -> list[str]:
    """The names of the last whole months, the earliest first."""
    found, day = [], today
    for _ in range(count):
        day = day.replace(day=1) - timedelta(days=1)
        found.append(f"{day:%Y-%m}")
    return found[::-1]


def run(*words: str, quietly: bool = False) -> None:
    """Shows a command and its output, or the command alone."""
    gap = "" if quietly else "\n"
    sys.stdout.write(f"{gap}$ lumos {' '.join(words)}\n")
    sys.stdout.flush()
    done = subprocess.run([LUMOS, *words], cwd=PLACE, check=False, capture_output=quietly)
    if done.returncode:
        sys.exit((done.stderr or b"").decode() or done.returncode)


def say(text: str) -> None:
    """A line between commands."""
    sys.stdout.write(f"\n# {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
