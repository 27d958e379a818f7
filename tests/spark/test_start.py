"""How a local session starts and ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lumos.spark import jvm
from lumos.spark.session import is_local

SLEEP = """
import sys, time
from lumos.spark.session import spark_session
try:
    with spark_session(master="local[1]", settings={}) as spark:
        print("READY", flush=True)
        spark.range(1).mapInArrow(lambda batches: (time.sleep(60) or batch for batch in batches), "id long").toArrow()
except KeyboardInterrupt:
    print("INTERRUPTED", flush=True)
"""


def children(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_the_jvm_ends_with_its_python(tmp_path: Path, end: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEP],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env={**os.environ, jvm.ARCHIVE_SWITCH: "off"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "READY\n"
    (java,) = children(process.pid)
    time.sleep(2)
    process.send_signal(end)
    process.wait(timeout=60)
    if end is signal.SIGINT:
        assert process.stdout.readline() == "INTERRUPTED\n"
    process.stdout.close()
    for _ in range(300):
        if not is_alive(java):
            break
        time.sleep(0.1)
    assert not is_alive(java)


@pytest.mark.parametrize(
    ("settings", "environment", "plain"),
    [
        pytest.param({}, {}, True, id="nothing set"),
        pytest.param({"spark.driver.memory": "4g"}, {}, True, id="memory"),
        pytest.param({"spark.driver.extraClassPath": "x.jar"}, {}, False, id="more classes"),
        pytest.param({}, {"SPARK_CONF_DIR": "/etc/spark"}, False, id="a Spark of one's own"),
        pytest.param({}, {"PYSPARK_SUBMIT_ARGS": "--jars x"}, False, id="arguments"),
    ],
)
def test_a_spark_that_was_set_up_with_care_is_started_its_own_way(
    settings: dict[str, str], environment: dict[str, str], plain: bool
) -> None:
    assert jvm.is_default_setup(settings, environment) is plain


def test_only_threads_of_this_machine_count_as_local() -> None:
    assert is_local("local")
    assert is_local("local[*]")
    assert not is_local("local-cluster[2,1,1024]")
    assert not is_local("spark://host:7077")


def test_the_archive_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jvm.ARCHIVE_SWITCH, "off")
    assert jvm.archive_file("java", jvm.spark_home()) is None
    assert jvm.archive_options("java", jvm.spark_home()) == []


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.delenv(jvm.ARCHIVE_SWITCH, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jvm.build_archive_if_missing("java", jvm.spark_home())
    assert jvm.archive_options("java", jvm.spark_home()) == []


@pytest.mark.slow
def test_an_archive_is_made_used_and_made_anew_for_another_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(jvm.ARCHIVE_SWITCH, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build = [
        sys.executable,
        "-m",
        "lumos.discovery.lake.class_archive",
        "java",
        str(jvm.spark_home()),
    ]
    subprocess.run(build, check=True)
    file = jvm.archive_file("java", jvm.spark_home())
    assert file is not None
    assert file.stat().st_size > 50_000_000
    assert f"-XX:SharedArchiveFile={file}" in jvm.archive_options("java", jvm.spark_home())
    older = file.with_name(f"{file.name.rpartition('-')[0]}-0000.jsa")
    file.rename(older)
    subprocess.run(build, check=True)
    assert file.exists()
    assert not older.exists()


SIGNALLED = """
import os, signal, time
from lumos.spark.session import spark_session
signal.signal(signal.SIGTERM, lambda *_: print("HEARD", flush=True))
with spark_session(master="local[1]", settings={}) as spark:
    os.killpg(0, signal.SIGTERM)
    time.sleep(1)
    print(spark.range(3).count(), flush=True)
"""


@pytest.mark.slow
def test_a_signal_to_all_processes_leaves_the_jvm_to_its_python(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        start_new_session=True,
        env={**os.environ, jvm.ARCHIVE_SWITCH: "off"},
    )
    assert done.stdout == "HEARD\n3\n", done.stderr


AHEAD = """
import os, subprocess
from lumos.spark.session import spark_session, start_jvm_early
start_jvm_early(master="local[1]", settings={})
with spark_session(master="local[1]", settings=SETTINGS) as spark:
    print(spark.range(3).count(), flush=True)
    own = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True, check=False
    )
    print(len(own.stdout.split()), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="same"),
        pytest.param({"spark.driver.memory": "2g"}, id="others"),
    ],
)
def test_a_session_takes_the_jvm_that_was_started_ahead_if_it_fits(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AHEAD.replace("SETTINGS", repr(settings))],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, jvm.ARCHIVE_SWITCH: "off"},
    )
    assert done.stdout == "3\n1\n", done.stderr


UNUSED = """
import os, subprocess
from lumos.spark.session import start_jvm_early
start_jvm_early(master="local[1]", settings={})
own = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=True)
print(own.stdout.split()[0], flush=True)
"""


def test_a_jvm_that_nobody_took_ends_with_its_python_in_silence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNUSED],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, jvm.ARCHIVE_SWITCH: "off"},
    )
    assert done.stderr == ""
    assert not is_alive(int(done.stdout))


@pytest.mark.parametrize(
    "cache", ["/" + "x" * 300, "/dev/null/cache"], ids=["cannot be looked at", "no folder"]
)
def test_a_cache_folder_that_cannot_be_used_is_done_without(
    cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.delenv(jvm.ARCHIVE_SWITCH, raising=False)
    assert jvm.archive_options(jvm.java_command(), jvm.spark_home()) == []
    jvm.build_archive_if_missing(jvm.java_command(), jvm.spark_home())


def test_a_user_without_a_home_has_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(jvm.ARCHIVE_SWITCH, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert jvm.archive_options(jvm.java_command(), jvm.spark_home()) == []
