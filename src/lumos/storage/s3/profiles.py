"""The profiles that the AWS command line keeps in ~/.aws."""

import hashlib
import json
import os
from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path

from lumos.storage.errors import NoCredentials


class Profiles:
    """The files `config` and `credentials`, and the logins of IAM Identity Center beside them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        home = Path(os.path.expanduser("~/.aws"))
        config = environment.get("AWS_CONFIG_FILE") or home / "config"
        keys = environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"
        self._config = _parsed(Path(config).expanduser())
        self._keys = _parsed(Path(keys).expanduser())
        self._logins = home / "sso" / "cache"

    def facts(self, name: str) -> dict[str, str]:
        """All that both files say about a profile; nothing where neither knows it."""
        in_config = name if name == "default" else f"profile {name}"
        return {**_section(self._config, in_config), **_section(self._keys, name)}

    @property
    def names(self) -> list[str]:
        """The profiles that there are."""
        in_config = (section.removeprefix("profile ") for section in self._config.sections())
        kept_apart = {"sso-session", "services"}
        named = {name for name in in_config if name.split(" ")[0] not in kept_apart}
        return sorted(named | set(self._keys.sections()))

    def login(self, name: str, facts: Mapping[str, str]) -> dict[str, str]:
        """The start address, region and token of a login through IAM Identity Center."""
        session = facts.get("sso_session", "")
        told = {**facts, **_section(self._config, f"sso-session {session}")}
        # The command line names the file after the session, and after the address before that.
        spelled = session or told.get("sso_start_url", "")
        digest = hashlib.sha1(spelled.encode(), usedforsecurity=False).hexdigest()
        file = self._logins / f"{digest}.json"
        try:
            kept = json.loads(file.read_text())
        except (OSError, ValueError):
            kept = {}
        if "accessToken" not in kept:
            raise NoCredentials(
                f"the profile '{name}' is not logged in; run: aws sso login --profile {name}"
            )
        return {"region": told.get("sso_region", ""), "token": kept["accessToken"]}


def _parsed(file: Path) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False, default_section="")
    try:
        parser.read(file, encoding="utf-8")
    except (Error, UnicodeDecodeError) as problem:
        # Its text quotes the line, and that line may hold a key.
        raise NoCredentials(f"{file} cannot be read: {type(problem).__name__}") from None
    return parser


def _section(parser: ConfigParser, name: str) -> dict[str, str]:
    return dict(parser[name]) if parser.has_section(name) else {}
