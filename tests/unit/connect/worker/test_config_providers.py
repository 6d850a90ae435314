"""Values that stand elsewhere, and that they are not seen."""

import json
from urllib.parse import quote

import pytest

from ottla.config.setting import HIGH, Secret
from ottla.connect.options import InvalidOption
from ottla.connect.worker.config_providers import ConfigProviders
from ottla.connect.worker.refusals import Refused
from ottla.connect.worker.secrets import secrets_of
from ottla.connect.worker.validation import find_plugin
from tests.unit.connect.worker.worker_in_a_thread import TestPlugins

PACKAGE = "org.apache.kafka.common.config.provider."


class Disk:
    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self._files[path]

    def real_path(self, path: str) -> str:
        return "/etc/passwd" if path == "/secrets/link" else path


DISK = Disk(
    {
        "/secrets/db.properties": b"password=s3cret\nuser=shop\n",
        "/secrets/token": b"abc\n",
        "/secrets/broken": b"password=\\uhunter2",
        "/etc/passwd": b"root",
    }
)


def providers(**more: str) -> ConfigProviders:
    worker = {
        "config.providers": "file, directory,env",
        "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
        "config.providers.directory.class": f"{PACKAGE}DirectoryConfigProvider",
        "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return ConfigProviders(worker, DISK, {"DB_HOST": "db.example", "OTHER": "x"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${file:/secrets/db.properties:password}", "s3cret"),
        ("jdbc://${env:DB_HOST}/?u=${file:/secrets/db.properties:user}", "jdbc://db.example/?u=shop"),
        ("${directory:/secrets:token}", "abc\n"),
        ("${vault:path:key}", "${vault:path:key}"),
        ("$1 and ${name}", "$1 and ${name}"),
    ],
)
def test_references_stand_for_values(text: str, value: str) -> None:
    assert providers().resolved({"a": text, "b": None}) == {"a": value}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${file:/no:password}", "a: cannot read ${file:/no:password}: No such file or directory"),
        ("${file:/secrets/db.properties:no}", "a: nothing is there for ${file:/secrets/db.properties:no}"),
        ("${env:NO}", "a: nothing is there for ${env:NO}"),
        ("${directory:/secrets:../x}", "not the name of a file"),
    ],
)
def test_what_is_not_there_is_said_with_the_setting(text: str, said: str) -> None:
    with pytest.raises(InvalidOption) as raised:
        providers().resolved({"a": text})
    assert said in str(raised.value)


def test_files_outside_of_allowed_paths_are_not_read() -> None:
    bounded = providers(config_providers_directory_param_allowed_paths="/secrets")
    assert bounded.resolved({"a": "${directory:/secrets:token}"}) == {"a": "abc\n"}
    for reference in ("${directory:/etc:passwd}", "${directory:/secrets:link}"):
        with pytest.raises(InvalidOption, match=r"allowed\.paths"):
            bounded.resolved({"a": reference})


def test_variables_beyond_the_pattern_are_not_read() -> None:
    bounded = providers(config_providers_env_param_allowlist_pattern="DB_.*")
    assert bounded.resolved({"a": "${env:DB_HOST}"}) == {"a": "db.example"}
    with pytest.raises(InvalidOption, match="nothing is there"):
        bounded.resolved({"a": "${env:OTHER}"})


def test_a_provider_that_is_not_here_is_refused_by_name() -> None:
    with pytest.raises(InvalidOption, match=r"com\.example\.Vault is not here"):
        ConfigProviders({"config.providers": "v", "config.providers.v.class": "com.example.Vault"}, DISK, {})


def test_secrets_are_hidden_longest_first() -> None:
    config = {"a": "${env:A}", "b.password": "hunter2-and-more", "pin": "hunter2", "c": "1"}
    resolved = {"a": "hunter2", "b.password": "hunter2-and-more", "pin": "hunter2", "c": "1"}
    secrets = secrets_of(config, resolved, [Secret("pin", HIGH, "")])
    assert secrets.hidden_in("login hunter2-and-more failed, 1 time") == "login [hidden] failed, 1 time"
    assert "hunter2" not in secrets.hidden_in("hunter2")


def test_a_secret_is_hidden_where_it_stands_alone_or_quoted() -> None:
    """In the configuration it is a part of a URL, or has the end of a line as files do."""
    config = {"url": "postgresql://shop:${file:/secrets/db.properties:password}@db", "t": "${directory:/secrets:token}"}
    values: dict[str, str] = {}
    secrets = secrets_of(config, providers().resolved(config, values), (), values)
    assert secrets.hidden_in("no login with s3cret") == "no login with ${file:/secrets/db.properties:password}"
    assert secrets.hidden_in("token 'abc' is wrong") == "token '${directory:/secrets:token}' is wrong"
    odd = "a\"'b\\c d"
    secrets = secrets_of({"a": "${env:A}"}, {"a": odd}, (), {odd: "${env:A}"})
    for quoted in (repr(odd)[1:-1], json.dumps(odd)[1:-1], quote(odd)):
        assert secrets.hidden_in(f"at {quoted}.") == "at ${env:A}."


def test_what_is_wrong_with_a_file_does_not_quote_it() -> None:
    with pytest.raises(InvalidOption) as told:
        providers().resolved({"a": "${file:/secrets/broken:password}"})
    assert "hunt" not in str(told.value)


def test_a_configuration_without_a_class_is_shown_without_its_passwords() -> None:
    with pytest.raises(Refused) as told:
        find_plugin(TestPlugins(), {"database.password": "hunter2", "file": "/in.txt"})
    assert str(told.value) == "Connector config {database.password=[hidden], file=/in.txt} contains no connector type"
