"""A registry with TLS, with passwords of a file or of the cluster, and with rights of the cluster's ACLs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ottla
from ottla.admin import AclBinding, AclOperation, AclResourceType
from ottla.errors import RegistryError, RegistryUnreachable
from ottla.registry.security import hash_password
from ottla.schemas.registry_port import SchemaToRegister
from ottla.security.tls.issuing import Authority
from ottla.testing import Broker, SchemaRegistry
from tests.clients.eventually import eventually

INT = SchemaToRegister("AVRO", '"int"')
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def of_its_own(name: str) -> dict[str, object]:
    """The session's broker has a registry already."""
    return {"kafkastore.topic": f"_schemas_{name}", "schema.registry.group.id": f"registry-{name}"}


def test_tls_and_certificates_of_clients(ottla_broker: Broker) -> None:
    authority = Authority("registries of tests", datetime.now(UTC))
    server, known, other = (authority.issue(name, ("localhost", "127.0.0.1")) for name in ("server", "known", "other"))
    trusted = authority.issued.certificate.decode()
    settings = {
        **of_its_own("tls"),
        "listeners": "https://127.0.0.1:0",
        "inter.instance.protocol": "https",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": server.key.decode(),
        "ssl.keystore.certificate.chain": server.certificate.decode(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": trusted,
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        "ottla.registry.auth.file": "",
        "ottla.registry.rights": "none",
    }
    trust = {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": trusted}

    def shown(issued: object) -> dict[str, str]:
        return {
            "ssl_keystore_type": "PEM",
            "ssl_keystore_key": issued.key.decode(),  # type: ignore[attr-defined]
            "ssl_keystore_certificate_chain": issued.certificate.decode(),  # type: ignore[attr-defined]
        }

    with SchemaRegistry(ottla_broker.bootstrap, settings) as registry:
        with ottla.SchemaRegistryClient(registry.url, **trust, **shown(known)) as client:
            eventually(lambda: _registers(client), True)
            assert client.subjects() == ["s"]
        with (
            ottla.SchemaRegistryClient(registry.url, **trust, max_retries=0) as client,
            pytest.raises(RegistryUnreachable),
        ):
            client.subjects()
        with (
            ottla.SchemaRegistryClient(registry.url, max_retries=0, **shown(other)) as client,
            pytest.raises(RegistryUnreachable),
        ):
            client.subjects()


def _registers(client: ottla.SchemaRegistryClient) -> bool:
    try:
        return client.register("s", INT).version == 1
    except (RegistryError, RegistryUnreachable):
        return False


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.json"
    user = {
        "username": "alice",
        "algorithm": "sha512",
        "salt": "s",
        "password_hash": hash_password("sha512", "s", "pw"),
    }
    permission = {"username": "alice", "operation": "Write", "resource": "Subject:a.*"}
    path.write_text(json.dumps({"users": [user], "permissions": [permission]}))
    return path


def test_passwords_and_rights_of_a_file(ottla_broker: Broker, users: Path) -> None:
    settings = {**of_its_own("file"), "authentication.method": "BASIC", "ottla.registry.auth.file": users}
    with SchemaRegistry(ottla_broker.bootstrap, settings) as registry:
        with ottla.SchemaRegistryClient(registry.url, basic_auth="alice:pw") as client:
            assert client.register("a", INT).version == 1
            with pytest.raises(RegistryError) as refused:
                client.register("b", INT)
            assert (refused.value.status, refused.value.code) == (403, 40301)
        for login in ("alice:wrong", "bob:pw"):
            with (
                ottla.SchemaRegistryClient(registry.url, basic_auth=login) as client,
                pytest.raises(RegistryError) as unknown,
            ):
                client.subjects()
            assert unknown.value.status == 401
        with ottla.SchemaRegistryClient(registry.url.replace("//", "//alice:pw@")) as client:
            assert client.subjects() == ["a"]


@pytest.fixture(scope="module")
def secured_broker() -> Iterator[Broker]:
    """Its users are admin and alice, and what they may do is in its ACLs."""
    listener = "listener.name.plaintext."
    login = f'{PLAIN} required user_admin="secret" user_alice="pw" username="admin" password="secret";'
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"{listener}sasl.enabled.mechanisms": "PLAIN",
        f"{listener}plain.sasl.jaas.config": login,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with Broker(settings, faults=False) as broker:
        yield broker


def login(name: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="{name}" password="{password}";',
    }


def test_users_and_acls_of_the_cluster(secured_broker: Broker) -> None:
    settings = {
        "authentication.method": "BASIC",
        "ottla.registry.users": "kafka",
        "ottla.registry.rights": "kafka",
        "ottla.registry.super.users": "User:admin",
        **{f"kafkastore.{key}": value for key, value in login("admin", "secret").items()},
    }
    with SchemaRegistry(secured_broker.bootstrap, settings) as registry:
        with ottla.SchemaRegistryClient(registry.url, basic_auth="admin:secret") as client:
            eventually(lambda: _registers(client), True)
            client.register("orders-value", INT)
            client.register("clicks-value", INT)
        with ottla.SchemaRegistryClient(registry.url, basic_auth="alice:pw") as client:
            assert client.subjects() == []
            with ottla.Admin({"bootstrap.servers": secured_broker.bootstrap, **login("admin", "secret")}) as admin:
                rule = AclBinding(AclResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)
                admin.create_acls([rule]).raise_first()
            eventually(client.subjects, ["orders-value"])
            with pytest.raises(RegistryError) as refused:
                client.register("orders-value", SchemaToRegister("AVRO", '"long"'))
            assert refused.value.code == 40301
        with (
            ottla.SchemaRegistryClient(registry.url, basic_auth="alice:wrong") as client,
            pytest.raises(RegistryError) as unknown,
        ):
            client.subjects()
        assert unknown.value.status == 401
