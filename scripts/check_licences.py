"""Fails when an installed dependency has a licence outside the allow-list."""

import re
import sys
from importlib.metadata import Distribution, distributions

ALLOWED = {
    "Apache-2.0", "Apache Software License", "Apache 2.0", "Apache License 2.0", "Apache",
    "Apache License, Version 2.0", "http://www.apache.org/licenses/LICENSE-2.0",
    "MIT", "MIT License", "MIT-0", "MIT-CMU", "Expat license", "0BSD", "Zlib", "CC0-1.0",
    "BSD", "BSD License", "BSD-2-Clause", "BSD-3-Clause",
    "3-Clause BSD License", "BSD 3-Clause License",
    "ISC", "ISC License (ISCL)", "PSF-2.0", "Python-2.0", "Python Software Foundation License",
    "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)", "The Unlicense (Unlicense)", "Unlicense",
    "BSL-1.0", "LLVM-exception", "Public Domain",
}  # fmt: skip
# Libraries that are used unmodified, installed apart, and only where an extra is asked for.
EXCEPTIONS = {"psycopg": "LGPL-3.0-only", "psycopg-binary": "LGPL-3.0-only"}
OURS = "lumos"


def licences(distribution: Distribution) -> set[str]:
    """Every licence the distribution names, from the most exact field it fills."""
    metadata = distribution.metadata
    if expression := metadata.get("License-Expression"):
        return {part for part in re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", expression) if part}
    marks = [line for line in metadata.get_all("Classifier") or () if line.startswith("License ::")]
    named = {line.rpartition(" :: ")[2] for line in marks} - {"OSI Approved"}
    return named or {(metadata.get("License") or "not named").strip().splitlines()[0]}


def main() -> int:
    """Lists what is not allowed; 1 where there is any."""
    checked, refused = 0, []
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name == OURS:
            continue
        checked += 1
        if outside := licences(distribution) - ALLOWED - {EXCEPTIONS.get(name)}:
            refused.append(f"{name} {distribution.version}: {', '.join(sorted(outside))}")
    for line in sorted(refused):
        sys.stderr.write(f"licence not on the allow-list: {line}\n")
    sys.stdout.write(f"Licences of {checked} dependencies checked, {len(refused)} refused.\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
