"""Our client of schema registries, blocking and asyncio, against our registry."""

import asyncio
import threading
from uuid import uuid4

import pytest

import ottla
from ottla.client.schema_registry.registry_core import RegistryCore
from ottla.errors import ConfigError, RegistryError, RegistryUnreachable
from ottla.schemas.registry_port import Reference, SchemaToRegister
from ottla.testing import SchemaRegistry

INT = SchemaToRegister("AVRO", '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
BASE = SchemaToRegister("AVRO", '{"type":"record","name":"Base","fields":[]}')


@pytest.fixture
def subject() -> str:
    return f"own-{uuid4().hex}"


def test_schemas_are_registered_found_and_kept(ottla_registry: SchemaRegistry, subject: str) -> None:
    with ottla.SchemaRegistryClient(ottla_registry.url) as client:
        registered = client.register(subject, INT)
        assert (registered.version, registered.subject, registered.text) == (1, subject, INT.text)
        core: RegistryCore = client._core
        asked = core.requests
        assert client.register(subject, INT) == registered
        assert core.requests == asked, "it is kept"
        assert registered.id is not None
        assert registered.guid is not None
        assert client.schema_by_id(registered.id).text == INT.text
        assert client.schema_by_guid(registered.guid).text == INT.text
        assert client.look_up(subject, INT).version == 1
        assert client.version(subject).id == client.version(subject, 1).id == registered.id
        assert subject in client.subjects("own-")
        assert client.versions(subject) == [1]
        assert client.ask("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
        with pytest.raises(RegistryError) as missing:
            client.version(subject, 9)
        assert (missing.value.status, missing.value.code, missing.value.is_missing) == (404, 40402, True)
        client.clear_caches()
        client.schema_by_id(registered.id)
        assert core.requests > asked + 3


def test_references_are_fetched(ottla_registry: SchemaRegistry, subject: str) -> None:
    with ottla.SchemaRegistryClient(ottla_registry.url) as client:
        client.register(f"{subject}-base", BASE)
        middle = SchemaToRegister(
            "AVRO",
            '{"type":"record","name":"Middle","fields":[{"name":"b","type":"Base"}]}',
            (Reference("Base", f"{subject}-base", 1),),
        )
        client.register(f"{subject}-middle", middle)
        top = SchemaToRegister(
            "AVRO",
            '{"type":"record","name":"Top","fields":[{"name":"m","type":"Middle"}]}',
            (Reference("Middle", f"{subject}-middle", 1),),
        )
        registered = client.register(subject, top)
        assert registered.id is not None
        found = client.schema_by_id(registered.id)
        assert list(found.resolved) == ["Base", "Middle"], "what a text needs comes before it"
        assert found.references == top.references


def test_metadata_finds_versions(ottla_registry: SchemaRegistry, subject: str) -> None:
    with ottla.SchemaRegistryClient(ottla_registry.url) as client:
        client.register(subject, SchemaToRegister("AVRO", INT.text, metadata={"properties": {"major": "1"}}))
        assert client.latest_with_metadata(subject, {"major": "1"}).version == 1


def test_many_who_ask_for_the_same_ask_once(ottla_registry: SchemaRegistry, subject: str) -> None:
    with ottla.SchemaRegistryClient(ottla_registry.url) as client:
        id = client.register(subject, INT).id
        assert id is not None
        client.clear_caches()
        before = client._core.requests
        found: list[str] = []
        threads = [threading.Thread(target=lambda: found.append(client.schema_by_id(id).text)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [INT.text] * 20
        assert client._core.requests == before + 1


def test_the_next_url_is_asked_when_one_does_not_answer(ottla_registry: SchemaRegistry, subject: str) -> None:
    urls = f"http://127.0.0.1:1,{ottla_registry.url}"
    with ottla.SchemaRegistryClient(urls, max_retries=0) as client:
        assert client.register(subject, INT).version == 1
    with (
        ottla.SchemaRegistryClient("http://127.0.0.1:1", max_retries=1, retries_wait_ms=1) as client,
        pytest.raises(RegistryUnreachable, match=r"cannot connect to http://127\.0\.0\.1:1"),
    ):
        client.subjects()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"url": "localhost:8081"},
        {"url": "ftp://x"},
        {"url": "http://a:1/x,http://b:1/y"},
        {"url": "http://a:1", "basic_auth": "no colon"},
        {"url": "http://a:1", "basic_auth": "a:b", "token": "t"},
        {"url": "http://a:1", "max_retries": "many"},
        {"url": "http://a:1", "colour": "blue"},
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        ottla.SchemaRegistryClient(settings)


def test_asyncio(ottla_registry: SchemaRegistry, subject: str) -> None:
    async def main() -> None:
        async with ottla.aio.SchemaRegistryClient(ottla_registry.url) as client:
            registered = await client.register(subject, INT)
            assert registered.id is not None
            many = await asyncio.gather(*(client.schema_by_id(registered.id) for _ in range(10)))
            assert {one.text for one in many} == {INT.text}
            assert await client.versions(subject) == [1]
            with pytest.raises(RegistryError):
                await client.version(subject, 5)

    asyncio.run(main())
