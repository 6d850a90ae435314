"""Generated files are committed, so that people can read them; here they are made again and compared."""

import importlib.util
from pathlib import Path
from types import ModuleType

from ottla.config.scopes import Scope, settings

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_settings_page_is_fresh() -> None:
    settings_reference = tool("settings_reference")
    assert settings_reference.PAGE.read_text() == settings_reference.page(), "stale: run `make generate`"


def test_the_stub_of_the_messages_is_fresh() -> None:
    message_stub = tool("message_stub")
    assert message_stub.STUB.read_text() == message_stub.stub_text(), "stale: run `make generate`"


def test_the_keywords_of_clients_are_fresh() -> None:
    client_keywords = tool("client_keywords")
    assert client_keywords.STUB.read_text() == client_keywords.stub_text(), "stale: run `make generate`"


def test_the_stub_of_the_admins_is_fresh() -> None:
    admin_stub = tool("admin_stub")
    assert admin_stub.STUB.read_text() == admin_stub.stub_text(), "stale: run `make generate`"


def test_the_tables_of_compatibility_are_fresh() -> None:
    compatibility_tables = tool("compatibility_tables")
    assert compatibility_tables.PAGE.read_text() == compatibility_tables.page(), "stale: run `make generate`"


def test_the_page_of_connect_is_fresh() -> None:
    connect_reference = tool("connect_reference")
    assert connect_reference.PAGE.read_text() == connect_reference.page(), "stale: run `make generate`"
    for name, rows in connect_reference.OPTIONS_OF.items():
        text = (connect_reference.PAGE.parent / "connect" / name).read_text()
        assert connect_reference.connector_page(text, rows) == text, "stale: run `make generate`"


def test_the_settings_page_has_every_setting() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    missing = [row.name for scope in Scope for row in settings(scope).values() if f"| `{row.name}` |" not in page]
    assert missing == []
