"""Writes the OpenAPI document of the server to build/openapi.json, for the types of the page."""

from pathlib import Path

from lumos.model.json_codec import to_json
from lumos.server.app import EXTRA_ROUTES
from lumos.server.openapi import document

FILE = Path(__file__).resolve().parents[1] / "build" / "openapi.json"


def main() -> None:
    """Write the document."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(to_json(document(EXTRA_ROUTES)))


if __name__ == "__main__":
    main()
