"""An outsider who asks for first messages of SCRAM never finds out which users there are, from a seed.

Users and tokens come and go, nodes start anew, and controllers take over from each other. Whatever happens, a name
keeps its salt on every node, as long as nobody has changed the user; and the answer for a user that there is not has
the form of one for a user that there is.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.machines.metadata.controller.activation import bootstrap_records
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.config import read_config
from ottla.node.node_sasl import NodeSasl
from ottla.node.storage.format_scram import parse_scram
from ottla.security.sasl.scram_keys import SCRAM_HASHES, salt_from
from ottla.security.sasl.scram_messages import ServerFirst, escaped, parse_server_first
from ottla.serving.node_settings import NodeSettings
from ottla.testing.clock import FixedClock
from ottla.testing.step_world import step_world
from ottla.wire.message import Message
from ottla.wire.messages import (
    AlterConfigsRequest,
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
)
from ottla.wire.record_values import decode_metadata_record, encode_metadata_record

NODES = 3
STEPS = 60
MECHANISMS = tuple(SCRAM_HASHES)
NAMES = ("alice", "bob", "a=b,c", "=2C", "Ünïcode", "nobody", "no-one", "a" * 300)
SETTINGS = {
    "process.roles": "broker,controller",
    "controller.quorum.voters": "1@c:1,2@c:2,3@c:3",
    "controller.listener.names": "CONTROLLER",
    "listeners": "SASL_PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "delegation.token.secret.key": "of all nodes",
}


class _Doors:
    """Takes what a listener is told of whom to let in."""

    def set_authenticator(self, _listener: str, authenticator: Any) -> None:
        self.authenticator = authenticator


class Node:
    """What logins need of one life of a node: its settings, and the metadata as far as it has them."""

    def __init__(self, node_id: int, chance: Random, log: list[Message]) -> None:
        self._log, self._read = log, 0
        self._config = read_config(SETTINGS | {"node.id": str(node_id)})
        world = step_world(seed=chance.randrange(1 << 32))
        self._doors: Any = _Doors()
        self._connections: Any = type("Connections", (), {})()
        self._sasl = NodeSasl(world, self._config)
        self._sasl.guard(self._doors, self._config.values)
        self._image = MetadataImage()
        self._sasl.on_loaded(self._image)
        self._settings = NodeSettings(node_id, self._config.values)
        self._settings.watch(
            lambda values, changed: self._sasl.on_settings(self._doors, self._connections, values, changed)
        )

    def catch_up(self) -> None:
        delta = MetadataDelta()
        for record in self._log[self._read :]:
            self._image.replay(record, delta)
        self._read = len(self._log)
        self._settings.on_metadata(self._image.configs, delta)

    def first_message(self, mechanism: str, name: str, is_token: bool) -> ServerFirst:
        extension = ",tokenauth=true" if is_token else ""
        server = self._doors.authenticator.mechanisms[mechanism]()
        return parse_server_first(server.evaluate(f"n,,n={escaped(name)},r=x{extension}".encode()))


class Cluster:
    """The log of the metadata, the controller that leads, and the nodes that follow."""

    def __init__(self, chance: Random, first_users: list[str]) -> None:
        self.chance = chance
        self.log: list[Message] = []
        self._formatted = [
            parse_scram(f"SCRAM-SHA-512=[name={user},password=x]", lambda: chance.randbytes(20)) for user in first_users
        ]
        self.fail_over()
        self.nodes = [self._started(node_id) for node_id in range(1, NODES + 1)]

    def fail_over(self) -> None:
        image = MetadataImage()
        for record in self.log:
            image.replay(record, MetadataDelta())
        self._controller = Controller(
            image,
            node_id=1,
            cluster_id="4L6g3nShT-eMCtK--X86sw",
            config=read_config(SETTINGS | {"node.id": "1"}).values,
            new_uuid=lambda: Uuid(self.chance.randbytes(16)),
            random=self.chance,
        )
        self.write(self._controller.activate([*bootstrap_records(), *self._formatted]))

    def restart(self, index: int) -> None:
        self.nodes[index] = self._started(index + 1)

    def _started(self, node_id: int) -> Node:
        node = Node(node_id, self.chance, self.log)
        node.catch_up()
        return node

    def write(self, decision: Any) -> Any:
        for record in decision.records:
            written, _ = decode_metadata_record(encode_metadata_record(record.message, record.version))
            self._controller.replay(written)
            self.log.append(written)
        return decision.reply

    def ask(self, request: Message) -> Any:
        return self.write(self._controller.decide(request, 0, 0))

    def token(self, request: Any) -> Any:
        reply = self.write(self._controller.alter_token(request, 2, "User:alice", FixedClock().now_ms()))
        assert reply.error_code == 0
        return reply

    @property
    def users(self) -> set[tuple[int, str]]:
        return set(self._controller.image.security.scram_credentials)


def upsertion(chance: Random, name: str, mechanism: str) -> AlterUserScramCredentialsRequest:
    """As Kafka's tools send it."""
    one = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name,
        mechanism=SCRAM_HASHES[mechanism].type,
        iterations=4096,
        salt=salt_from(chance.randbytes(17)),
        salted_password=chance.randbytes(64),
    )
    return AlterUserScramCredentialsRequest(upsertions=[one])


def deletion(name: str, mechanism: str) -> AlterUserScramCredentialsRequest:
    one = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=SCRAM_HASHES[mechanism].type)
    return AlterUserScramCredentialsRequest(deletions=[one])


def looks_like_kafkas(first: ServerFirst) -> bool:
    digits = set(b"0123456789abcdefghijklmnopqrstuvwxyz")
    return first.iterations == 4096 and 20 <= len(first.salt) <= 26 and set(first.salt) <= digits


def questions(token_ids: list[str]) -> Iterator[tuple[str, str, bool]]:
    for mechanism in MECHANISMS:
        yield from ((mechanism, name, False) for name in NAMES)
        yield from ((mechanism, token_id, True) for token_id in [*token_ids, *NAMES[:3]])


@pytest.mark.parametrize("seed", range(12))
def test_vulnerability_an_outsider_cannot_tell_users_that_there_are_from_those_that_there_are_not(seed: int) -> None:
    chance = Random(seed)
    cluster = Cluster(chance, ["alice"] if seed % 2 else [])
    seen: dict[tuple[str, str, bool], bytes] = {}
    tokens: dict[str, bytes] = {}
    token_ids: list[str] = []
    for _ in range(STEPS):
        changed: tuple[str, str, bool] | None = None
        match chance.randrange(7):
            case 0:
                changed = chance.choice(MECHANISMS), chance.choice(NAMES[:5]), False
                cluster.ask(upsertion(chance, changed[1], changed[0]))
            case 1 if cluster.users:
                kind, name = chance.choice(sorted(cluster.users))
                changed = next(one for one in MECHANISMS if SCRAM_HASHES[one].type == kind), name, False
                cluster.ask(deletion(name, changed[0]))
            case 2:
                cluster.restart(chance.randrange(NODES))
            case 3:
                cluster.fail_over()
            case 4:
                made = cluster.token(CreateDelegationTokenRequest(max_lifetime_ms=1 << 40))
                tokens[made.token_id] = bytes(made.hmac)
                token_ids.append(made.token_id)
            case 5 if tokens:
                ended = chance.choice(sorted(tokens))
                cluster.token(ExpireDelegationTokenRequest(hmac=tokens.pop(ended), expiry_time_period_ms=-1))
            case 6:  # The old request: whatever is not named goes.
                resource = AlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="")
                resource.configs = [AlterConfigsRequest.AlterableConfig(name="min.insync.replicas", value="1")]
                cluster.ask(AlterConfigsRequest(resources=[resource]))
        if changed is not None:
            seen.pop(changed, None)
        for node in cluster.nodes:
            node.catch_up()
            if not cluster.users and not seen:
                continue  # Where no user has ever been, there is nobody to be found.
            for question in questions(token_ids):
                first = node.first_message(*question)
                assert looks_like_kafkas(first), question
                assert seen.setdefault(question, first.salt) == first.salt, question
    assert seen
