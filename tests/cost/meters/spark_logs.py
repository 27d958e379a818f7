"""Event logs as Spark writes them, event by event."""

import json
from pathlib import Path
from typing import Any

START = 1_704_067_200_000  # 2024-01-01T00:00:00Z
HOUR = 3_600_000


def started(
    name: str = "nightly", *, at: int = START, id: str = "app-1", **more: Any
) -> dict[str, Any]:
    return {
        "Event": "SparkListenerApplicationStart",
        "App Name": name,
        "App ID": id,
        "Timestamp": at,
        "User": "etl",
        **more,
    }


def ended(at: int) -> dict[str, Any]:
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": at}


def added(executor: str, *, cores: int, at: int = START) -> dict[str, Any]:
    return {
        "Event": "SparkListenerExecutorAdded",
        "Timestamp": at,
        "Executor ID": executor,
        "Executor Info": {"Host": "h", "Total Cores": cores, "Log Urls": {}},
    }


def removed(executor: str, at: int) -> dict[str, Any]:
    return {
        "Event": "SparkListenerExecutorRemoved",
        "Timestamp": at,
        "Executor ID": executor,
        "Removed Reason": "idle",
    }


def staged(bytes_read: int | str, at: int = START + 60_000) -> dict[str, Any]:
    accumulables = [
        {"ID": 1, "Name": "internal.metrics.input.bytesRead", "Value": bytes_read},
        {"ID": 2, "Name": "other", "Value": [1]},
    ]
    return {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": {"Stage ID": 0, "Completion Time": at, "Accumulables": accumulables},
    }


def configured(**properties: str) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return {
        "Event": "SparkListenerEnvironmentUpdate",
        "JVM Information": {},
        "Spark Properties": named,
    }


def written(path: Path, *events: dict[str, Any]) -> Path:
    """The log in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in events))
    return path
