"""`ottla certificates DIR`: an authority, a node's certificate and a client's, for trying things out.

Files hold a private key and then the certificate, as `ssl.keystore.location` takes them with type PEM, and are for
their owner alone. What is there already is kept: more names for a node mean another directory.
"""

import os
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Final

from ottla.base.errors import OttlaError
from ottla.cli.help_format import CommandParser
from ottla.security.tls.issuing import Authority

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_SETTINGS: Final = """\
a listener of a node:
  ssl.keystore.type=PEM
  ssl.keystore.location={node}
  ssl.truststore.type=PEM
  ssl.truststore.location={authority}

a client, with security.protocol SSL or SASL_SSL:
  ssl.truststore.type=PEM
  ssl.truststore.location={authority}

a client that a node asks for a certificate (ssl.client.auth=required), and knows as User:CN={name}:
  ssl.keystore.type=PEM
  ssl.keystore.location={client}"""


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    paths = {name: os.path.join(options.directory, f"{name}.pem") for name in ("ca", "node", options.client)}
    if there := [path for path in paths.values() if os.path.exists(path)]:
        print(f"ottla certificates: {there[0]} is there already; name another directory", file=sys.stderr)
        return 1
    try:
        authority = Authority("ottla trial CA", datetime.now(UTC))
        node = authority.issue("node", tuple(dict.fromkeys((*_HOSTS, *options.host))))
        client = authority.issue(options.client)
        os.makedirs(options.directory, exist_ok=True)
        _write(paths["ca"], authority.issued.certificate)
        _write(paths["node"], node.both)
        _write(paths[options.client], client.both)
    except (OttlaError, OSError) as problem:
        print(f"ottla certificates: {problem}", file=sys.stderr)
        return 1
    client_path = paths[options.client]
    print(_SETTINGS.format(node=paths["node"], authority=paths["ca"], client=client_path, name=options.client))
    return 0


def _parser() -> ArgumentParser:
    parser = CommandParser("ottla certificates", description="Makes certificates for trying TLS out.")
    parser.add_argument("directory", metavar="DIR", help="where to write them; made if it is not there")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name or address of the node; may be repeated",
    )
    parser.add_argument("--client", default="client", metavar="NAME", help="the client's name (default: client)")
    return parser


def _write(path: str, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
