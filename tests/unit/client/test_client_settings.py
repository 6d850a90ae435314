"""Settings of clients: three ways to give them, one way to be told what is wrong."""

import pytest

from ottla.client.protection import Protection
from ottla.client.settings import Address, ClientSettings, SettingWarning, read_settings, read_settings_file
from ottla.config.parse import ConfigError
from ottla.config.scopes import Scope
from ottla.config.values import Password

BROKERS = "localhost:9092"


def producer(**keywords: object) -> ClientSettings:
    return read_settings(Scope.PRODUCER, keywords={"bootstrap_servers": BROKERS, **keywords})


def problem(**keywords: object) -> str:
    with pytest.raises(ConfigError) as raised:
        producer(**keywords)
    return str(raised.value)


def test_keywords_a_mapping_and_a_file_mean_the_same() -> None:
    by_keyword = producer(linger_ms=7, acks=1)
    by_mapping = read_settings(Scope.PRODUCER, {"bootstrap.servers": [BROKERS], "linger.ms": "7", "acks": "1"})
    by_file = read_settings_file(Scope.PRODUCER, b"bootstrap.servers=localhost:9092\nlinger.ms=7\nacks=1\n")
    for settings in (by_keyword, by_mapping, by_file):
        assert settings.integer("linger.ms") == 7
        assert settings.text("acks") == "1"
        assert settings.integer("batch.size") == 16_384
        assert settings.bootstrap == (Address("localhost", 9092),)


def test_keywords_win_over_the_mapping_and_the_file() -> None:
    given = {"bootstrap.servers": BROKERS, "linger.ms": 1}
    assert read_settings(Scope.PRODUCER, given, {"linger_ms": 2}).integer("linger.ms") == 2
    content = b"bootstrap.servers=a:1\nlinger.ms=1\n"
    assert read_settings_file(Scope.PRODUCER, content, {"linger_ms": 2}).integer("linger.ms") == 2


def test_none_is_as_if_it_were_not_given() -> None:
    settings = producer(transactional_id=None, linger_ms=None)
    assert settings.integer("linger.ms") == 5
    assert settings.optional_text("transactional.id") is None


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    assert (
        problem(lingr_ms=5) == "lingr.ms=5: it must be the name of a setting of the producer; did you mean linger.ms?"
    )


def test_a_setting_of_another_client_is_refused_by_name_and_only_warned_about_in_a_file() -> None:
    assert "this is one of the consumer" in problem(group_id="g")
    settings = read_settings_file(Scope.PRODUCER, b"bootstrap.servers=a:1\ngroup.id=g\n")
    assert any(warned.key == "group.id" and "consumer" in warned.reason for warned in settings.warnings)
    with pytest.raises(ConfigError, match="linger"):
        read_settings_file(Scope.PRODUCER, b"bootstrap.servers=a:1\nlingr.ms=5\n")


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"linger_ms": -1}, "linger.ms=-1: it must be at least 0"),
        ({"linger_ms": 1.5}, "linger.ms=1.5: it must be at least 0"),
        ({"enable_idempotence": 1}, "enable.idempotence=1: it must be a boolean"),
        ({"compression_type": "rar"}, "compression.type=rar: it must be one of none, gzip, snappy, lz4, zstd"),
        ({"batch_size": True}, "batch.size=True: it must be at least 0"),
        ({"batch_size": 1 << 40}, "batch.size=1099511627776: it must be a whole number of 32 bits"),
    ],
)
def test_a_wrong_value_is_told_with_its_bound(keywords: dict[str, object], told: str) -> None:
    assert problem(**keywords) == told


def test_all_problems_are_told_at_once() -> None:
    assert problem(linger_ms=-1, lingr_ms=5).count("\n") == 1


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:99999", "a:b"])
def test_a_bootstrap_server_that_is_no_address_is_refused(text: str) -> None:
    assert "host:port" in problem(bootstrap_servers=text)


def test_bootstrap_servers_are_needed_and_may_be_ipv6() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        read_settings(Scope.CONSUMER)
    assert producer(bootstrap_servers="[::1]:9092,b:1").bootstrap == (Address("::1", 9092), Address("b", 1))


def test_an_admin_may_be_given_controllers_instead() -> None:
    settings = read_settings(Scope.ADMIN, keywords={"bootstrap_controllers": "c:9093"})
    assert settings.bootstrap == (Address("c", 9093),)


def test_what_asks_for_security_is_taken_and_what_only_java_has_is_refused_by_name() -> None:
    given = producer(security_protocol="sasl_ssl", ssl_truststore_location="/t", sasl_mechanism="PLAIN")
    assert Protection.of(given) == Protection(has_tls=True, has_sasl=True)
    assert Protection.of(producer()) == Protection(has_tls=False, has_sasl=False)
    told = problem(ssl_engine_factory_class="org.x.Factory", sasl_login_callback_handler_class="org.x.Handler")
    assert "ssl.engine.factory.class=org.x.Factory: it must be left out" in told
    assert "sasl.login.callback.handler.class=org.x.Handler: it must be org.apache.kafka" in told
    assert "did you mean ssl.truststore.location?" in problem(ssl_truststore_locatoin="/t")


def test_what_asks_for_something_that_clients_do_not_have_is_refused_by_name(recwarn: pytest.WarningsRecorder) -> None:
    told = problem(
        transaction_two_phase_commit_enable="true",
        config_providers="file",
    )
    assert "transaction.two.phase.commit.enable=true: it must be false" in told
    assert "config.providers=file: it must be left out" in told
    assert "interceptor.classes=org.x.Spy: it must be a list of objects" in problem(interceptor_classes="org.x.Spy")
    assert "metric.reporters=org.x.Reporter: it must be left out" in problem(metric_reporters="org.x.Reporter")
    canonical = "resolve_canonical_bootstrap_servers_only"
    assert f"client.dns.lookup={canonical}: it must be use_all_dns_ips" in problem(client_dns_lookup=canonical)
    nothing = {"interceptor_classes": "", "enable_metrics_push": False, "transaction_two_phase_commit_enable": "false"}
    producer(**nothing).warn()
    usual = "org.apache.kafka.common.metrics.JmxReporter"
    producer(client_dns_lookup="use_all_dns_ips", metric_reporters=usual, metrics_recording_level="INFO").warn()
    assert not recwarn.list
    with pytest.raises(ConfigError, match=r"share\.acquire\.mode=record_limit: it must be left out"):
        read_settings(Scope.CONSUMER, {"bootstrap.servers": BROKERS, "share.acquire.mode": "record_limit"})


@pytest.mark.parametrize("secret", ["hunter2", Password("hunter2")])
def test_a_secret_is_never_shown(secret: object) -> None:
    settings = producer(sasl_jaas_config=secret, ssl_key_password=secret)
    assert "hunter2" not in repr(settings) + repr(dict(settings))
    assert "hunter2" not in problem(ssl_key_password=secret, nothing_like_this=1)
    assert "hunter2" not in problem(sasl_jaas_cofnig=secret)


def test_objects_stand_where_kafka_names_classes() -> None:
    def partitioner() -> None: ...

    settings = producer(partitioner_class=partitioner, key_serializer="string")
    assert settings.plug_in("partitioner.class") is partitioner
    assert settings.plug_in("key.serializer") == "string"
    assert settings.plug_in("value.serializer") is None
    assignors = [object()]
    consumer = read_settings(Scope.CONSUMER, {"bootstrap.servers": BROKERS, "partition.assignment.strategy": assignors})
    assert consumer.plug_in("partition.assignment.strategy") is assignors


def test_a_setting_that_is_not_acted_on_is_warned_about() -> None:
    settings = producer(metrics_recording_level="DEBUG")
    with pytest.warns(SettingWarning, match=r"metrics\.recording\.level: .* does not act on it"):
        settings.warn()
