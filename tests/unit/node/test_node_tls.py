"""Which listeners of a node have TLS, and with which settings."""

from pathlib import Path

import pytest

from ottla.config.parse import ConfigError
from ottla.node.config import read_config
from ottla.node.node_tls import CONTROLLERS, NodeTls
from ottla.testing.step_world import step_world
from tests.unit.security.tls import trial_certificates as trial


def node_tls(directory: Path, protocols: str, **settings: str) -> NodeTls:
    (directory / "node.pem").write_bytes(trial.node().both)
    (directory / "ca.pem").write_bytes(trial.authority().issued.certificate)
    properties = {
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "INSIDE://localhost:9092,OUTSIDE://localhost:9094",
        "inter.broker.listener.name": "INSIDE",
        "listener.security.protocol.map": protocols,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        **{key.replace("_", "."): text for key, text in settings.items()},
    }
    return NodeTls(step_world(), read_config(properties))


def test_a_node_without_tls_has_none_of_it(tmp_path: Path) -> None:
    tls = node_tls(tmp_path, "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT", ssl_keystore_location="/none")
    assert tls.secure("INSIDE", print) is None
    assert tls.dialers() == {}


def test_nodes_connect_by_tls_where_the_listeners_among_them_have_it(tmp_path: Path) -> None:
    tls = node_tls(tmp_path, "INSIDE:SSL,OUTSIDE:PLAINTEXT,CONTROLLER:SSL")
    assert set(tls.dialers()) == {CONTROLLERS, "INSIDE"}
    assert tls.secure("INSIDE", print) is not None
    assert tls.secure("OUTSIDE", print) is None


def test_what_is_for_clients_alone_is_not_dialled(tmp_path: Path) -> None:
    tls = node_tls(tmp_path, "INSIDE:PLAINTEXT,OUTSIDE:SSL,CONTROLLER:PLAINTEXT")
    assert tls.dialers() == {}
    assert tls.secure("OUTSIDE", print) is not None


def test_a_listener_with_sasl_asks_for_certificates_only_if_it_is_told_to_itself(tmp_path: Path) -> None:
    protocols = "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL,CONTROLLER:PLAINTEXT"
    asked = [
        node_tls(tmp_path, protocols, **settings)._trust["OUTSIDE"].values["ssl.client.auth"]
        for settings in ({"ssl_client_auth": "required"}, {"listener_name_outside_ssl_client_auth": "required"})
    ]
    assert asked == ["none", "required"]


def test_what_cannot_be_used_is_told_with_its_listener(tmp_path: Path) -> None:
    protocols = "INSIDE:PLAINTEXT,OUTSIDE:SSL,CONTROLLER:PLAINTEXT"
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location=/none: .* \(listener OUTSIDE\)"):
        node_tls(tmp_path, protocols, listener_name_outside_ssl_keystore_location="/none")
