"""Certificates change while a listener runs, to others that name the same (KIP-978), or not at all."""

import pytest

from ottla.config.parse import ConfigError
from ottla.runtime.tls.trust import ListenerTrust
from ottla.security.tls.stores import read_material
from tests.unit.security.tls import trial_certificates as trial

NODE = trial.inline(trial.node(), trial.authority())


def changed(before: dict[str, str], after: dict[str, object], **extra: object) -> ListenerTrust:
    trust = ListenerTrust(before)
    values = {**after, **{key.replace("_", "."): value for key, value in extra.items()}}
    trust.update(values, read_material(values))  # type: ignore[arg-type]
    return trust


def inline(issued: trial.Issued) -> dict[str, object]:
    return {**trial.inline(issued, trial.authority())}


def test_a_new_certificate_of_the_same_name_is_taken() -> None:
    renewed = trial.authority().issue("node-1", trial.HERE)
    before = ListenerTrust(NODE).server
    assert changed(NODE, inline(renewed)).server is not before


def test_another_subject_has_to_be_allowed() -> None:
    other = trial.authority().issue("node-9", trial.HERE)
    with pytest.raises(ConfigError, match="CN=node-9: it must be a certificate of CN=node-1, as before"):
        changed(NODE, inline(other))
    changed(NODE, inline(other), ssl_allow_dn_changes=True)


def test_alternative_names_may_be_added_but_not_left_out() -> None:
    more = trial.authority().issue("node-1", (*trial.HERE, "node-1.example"))
    fewer = trial.authority().issue("node-1", trial.HERE[:1])
    changed(NODE, inline(more))
    with pytest.raises(ConfigError, match="for all alternative names of the one before"):
        changed(NODE, inline(fewer))
    changed(NODE, inline(fewer), ssl_allow_san_changes=True)


def test_what_cannot_be_used_leaves_everything_as_it_was() -> None:
    trust = ListenerTrust(NODE)
    server, client = trust.server, trust.client
    broken = {**inline(trial.node()), "ssl.cipher.suites": "NONSENSE"}
    with pytest.raises(ConfigError):
        trust.update(broken, read_material(broken))  # type: ignore[arg-type]
    assert (trust.server, trust.client) == (server, client)


def test_nodes_have_to_trust_what_they_show_each_other() -> None:
    ListenerTrust(NODE, is_dialled=True)
    strangers = trial.inline(trial.impostor(), trial.authority())
    ListenerTrust(strangers)
    with pytest.raises(ConfigError, match="nodes show it to each other"):
        ListenerTrust(strangers, is_dialled=True)


def test_a_listener_of_other_nodes_alone_needs_no_certificate() -> None:
    trust = ListenerTrust(trial.inline(None, trial.authority()), is_served=False)
    assert trust.server is None
