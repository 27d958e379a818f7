"""A certified OpenID Connect provider: oidc-provider, from npm into build/."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

VERSION = "9.13.3"
_FOLDER = Path(__file__).parents[2] / "build" / "oidc-provider"
_SECONDS_TO_FETCH = 600
# Programs that log in as ann and eve get access tokens for the audience lumos.
_PROGRAM = """
import { Provider } from 'oidc-provider';
const port = Number(process.argv[2]);
const client = (id) => ({
  client_id: id, client_secret: `secret-of-${id}`, grant_types: ['client_credentials'],
  redirect_uris: [], response_types: [],
});
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [client('ann'), client('eve')],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        audience: resource.replace('urn:', ''), accessTokenFormat: 'jwt', accessTokenTTL: 300,
        scope: 'api', jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  extraTokenClaims: (ctx, token) => ({
    groups: token.clientId === 'ann' ? ['engineering'] : ['chess'],
  }),
});
provider.listen(port, '127.0.0.1', () => console.log('listening'));
"""


class OidcProvider(NamedTuple):
    """A running provider."""

    issuer: str

    def token(self, client: str, *, audience: str = "lumos") -> str:
        """The access token that a client gets for a program."""
        form = {
            "grant_type": "client_credentials", "resource": f"urn:{audience}", "scope": "api",
        }  # fmt: skip
        login = (client, f"secret-of-{client}")
        answer = httpx.post(f"{self.issuer}/token", data=form, auth=login, timeout=30)
        return str(answer.raise_for_status().json()["access_token"])


@contextmanager
def oidc_provider() -> Iterator[OidcProvider]:
    """A provider on a free port; skips the test, saying why, where it cannot be had."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"There is no {tool} here.")
    if not (_FOLDER / "node_modules/oidc-provider").exists():
        _fetch()
    program = _FOLDER / f"provider.{os.getpid()}.mjs"
    program.write_text(_PROGRAM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        ["node", program, str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "listening\n"
            yield OidcProvider(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(timeout=30)
            program.unlink()


def _fetch() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", _FOLDER, "--no-audit", "--no-fund", "--ignore-scripts",
               f"oidc-provider@{VERSION}"]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS_TO_FETCH, check=False
    )
    if done.returncode:
        pytest.skip(f"npm cannot fetch oidc-provider: {done.stderr.strip()[-300:]}")
