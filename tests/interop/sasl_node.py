"""A node with a listener for everyone and one with SASL; the users of SCRAM are made as people make them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from ottla.cli.main import main
from ottla.testing.free_ports import free_port
from ottla.testing.node import RunningNode

PLAIN_USERS = {"alice": "alice-secret", "bob": 'b"o\\b;'}
SCRAM_USERS = {"carol": "carol-secret", "d=a,n": "dan-secret"}
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SaslNode(NamedTuple):
    node: RunningNode
    bootstrap: str
    """Of the listener with SASL; that of the node is plain."""


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextmanager
def a_sasl_node(
    more: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[SaslNode]:
    port = free_port()
    users = " ".join(f"user_{name}={quoted(password)}" for name, password in PLAIN_USERS.items())
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
        **(more or {}),
    }
    with RunningNode(config=settings, environment=environment) as node:
        yield SaslNode(node, f"127.0.0.1:{port}")


def alter_user(bootstrap: str, user: str, *change: str) -> None:
    """`kafka-configs --alter` for a user: `--add-config SCRAM-…=[password=…]` or `--delete-config SCRAM-…`."""
    altered = ["configs", "--bootstrap-server", bootstrap, "--alter", "--entity-type", "users", "--entity-name", user]
    assert main([*altered, *change]) == 0


def add_scram_users(bootstrap: str) -> None:
    for user, password in SCRAM_USERS.items():
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            alter_user(bootstrap, user, "--add-config", f"{mechanism}=[password={password}]")
