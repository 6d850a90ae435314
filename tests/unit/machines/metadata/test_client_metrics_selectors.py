"""Which clients a metrics subscription is for (KIP-714), with Kafka's answers."""

import pytest

from ottla.machines.metadata.settings.setting_checks import check_client_metrics_settings
from ottla.wire.errors import ErrorCode


@pytest.mark.parametrize(
    "match", ["", "client_id=orders-.*", "client_id=a,client_software_version=1[.].*", " client_source_port = 9.* "]
)
def test_selectors_are_regular_expressions_for_properties_of_clients(match):
    assert check_client_metrics_settings("s", {"match": match}) is None


@pytest.mark.parametrize(
    "match", ["nobody=x", "client_id", "client_id=", "client_id=a=b", "client_id=(", "client_id=a,nobody=x"]
)
def test_what_is_none_is_refused(match):
    refusal = check_client_metrics_settings("s", {"match": match})
    assert refusal is not None
    assert refusal.code == ErrorCode.INVALID_CONFIG
