"""Collections of odd files that others publish; they come from registries into build/, pinned."""

import hashlib
import html
import os
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

import pyspark
import pytest

BUILD = Path(__file__).parents[1] / "build" / "corpora"
_HREF = re.compile(r'href="([^"]+)"')


def sdist(name: str, version: str, sha256: str) -> Path:
    """The folder of a package's source distribution, through pip's own index; skips without."""
    archive = BUILD / f"{name}-{version}.tar.gz"
    if not archive.exists():
        try:
            data = _from_index(name, archive.name)
        except (OSError, ValueError) as problem:
            pytest.skip(f"{archive.name} cannot be had: {problem}")
        archive.parent.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.rename(archive)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256, archive
    folder = BUILD / f"{name}-{version}"
    if not folder.exists():
        scratch = BUILD / f"{name}-{version}.{os.getpid()}"
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        (scratch / folder.name).rename(folder)
        scratch.rmdir()
    return folder


def jar(organisation: str, name: str, version: str, sha256: str, classifier: str = "tests") -> Path:
    """An archive from Maven Central, through the Ivy that Spark brings along; skips without.

    Without a classifier it is what others build upon, not its tests.
    """
    archive = BUILD / (
        f"{name}-{version}-{classifier}.jar" if classifier else f"{name}-{version}.jar"
    )
    if not archive.exists():
        try:
            _retrieve(archive, organisation, name, version, classifier)
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            pytest.skip(f"{archive.name} cannot be had: {problem}")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256, archive
    return archive


_WANTED = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="lumos" module="corpora"/>
  <dependencies><dependency org="{organisation}" name="{name}" rev="{version}" transitive="false">
    <artifact name="{name}" type="jar" ext="jar" {classifier}/>
  </dependency></dependencies>
</ivy-module>"""


def _retrieve(archive: Path, organisation: str, name: str, version: str, classifier: str) -> None:
    """Brings an archive into the folder, or says why not."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise ValueError("Spark brings no Ivy along.")
    # Archives of one project share its descriptions, which may take minutes to come.
    cache = BUILD / "ivy"
    cache.mkdir(parents=True, exist_ok=True)
    wanted = _WANTED.format(
        organisation=organisation,
        name=name,
        version=version,
        classifier=f'm:classifier="{classifier}"' if classifier else "",
    )
    (cache / f"{name}.xml").write_text(wanted, encoding="utf-8")
    command = [
        "java", "-jar", ivy, "-warn", "-cache", cache, "-ivy", cache / f"{name}.xml",
        "-retrieve", BUILD / "[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if not archive.exists():
        raise ValueError(" ".join((done.stdout + done.stderr).split())[-300:] or "Nothing came.")


def _from_index(package: str, file: str) -> bytes:
    index = _pip_setting("index-url") or _usual_index()
    page = urljoin(f"{index.rstrip('/')}/", f"{package}/")
    addresses = _HREF.findall(_fetched(page).decode())
    address = next((each for each in addresses if file in each), None)
    if address is None:
        raise ValueError(f"The index has no {file}.")
    return _fetched(urljoin(page, html.unescape(address)))


def _fetched(address: str) -> bytes:
    certificates = os.environ.get("PIP_CERT") or _pip_setting("cert") or None
    context = ssl.create_default_context(cafile=certificates)
    with urllib.request.urlopen(address, timeout=120, context=context) as answer:
        data: bytes = answer.read()
        return data


def _pip_setting(key: str) -> str:
    command = [sys.executable, "-m", "pip", "config", "get", f"global.{key}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _usual_index() -> str:
    from pip._internal.models.index import PyPI

    return PyPI.simple_url
