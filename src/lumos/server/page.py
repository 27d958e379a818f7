"""The web page: the built files in the package, and the headers of their responses.

The page calls the routes of the API like any other client. Its content security policy allows
nothing from other hosts and no inline scripts.
"""

import mimetypes
from pathlib import Path
from typing import Final, NamedTuple

from lumos.errors import LumosError

FOLDER: Final = Path(__file__).parent / "static"
# The paths of all addresses of the page; the dataset is a parameter of the query.
PAGES: Final = (
    "/",
    "/search",
    "/dataset",
    "/lineage",
    "/what-if",
    "/cost",
    "/operations",
)
ASSETS: Final = "/assets"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        # React sets the styles of elements through the DOM, which this policy allows.
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# For assets, whose names contain a hash of their content.
_FOREVER: Final = "public, max-age=31536000, immutable"


class PageNotBuilt(LumosError):
    """The package does not contain the built page, for example in a new checkout."""

    def __init__(self) -> None:
        super().__init__("The web page has not been built. Build it with: make setup")


class PageFile(NamedTuple):
    """A file of the page and its headers."""

    body: bytes
    media_type: str
    headers: dict[str, str]


def is_built() -> bool:
    """Whether the package contains the page."""
    return (FOLDER / "index.html").is_file()


def index() -> PageFile:
    """The HTML document that every address of the page shows; raises PageNotBuilt."""
    if not is_built():
        raise PageNotBuilt
    body = (FOLDER / "index.html").read_bytes()
    headers = {**_HEADERS, "Cache-Control": "no-cache"}
    return PageFile(body, "text/html; charset=utf-8", headers)


def asset(name: str) -> PageFile | None:
    """A script, style or image of the page, or None if there is no such file."""
    file = _assets().get(name)
    if file is None:
        return None
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    if file.suffix == ".js":
        # Some systems map .js to a type with which browsers refuse to run modules.
        media_type = "text/javascript"
    return PageFile(file.read_bytes(), media_type, {**_HEADERS, "Cache-Control": _FOREVER})


def _assets() -> dict[str, Path]:
    """The asset files by name. Requested names are looked up here, never joined to a folder."""
    folder = FOLDER / "assets"
    return {file.name: file for file in folder.iterdir()} if folder.is_dir() else {}
