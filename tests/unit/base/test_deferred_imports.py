"""A deferred module is imported at once, and loaded by the first who looks into it."""

import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from types import ModuleType

import pytest

from ottla.base.deferred_imports import defer

LATE = """
loads.append(__name__)
answer = 42
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where modules of the test's own are found; all is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that were loaded, in order."""
    names: list[str] = []
    monkeypatch.setattr("builtins.loads", names, raising=False)
    return names


def test_a_deferred_module_is_loaded_when_it_is_looked_into(place: Path, loads: list[str]) -> None:
    (place / "late.py").write_text(LATE)
    defer("late")
    import late

    assert loads == []
    assert late.answer == 42
    assert loads == ["late"]


def test_importing_it_again_loads_nothing(place: Path, loads: list[str]) -> None:
    (place / "late.py").write_text(LATE)
    defer("late")
    import late
    import late as again

    assert again is late
    assert loads == []


def test_taking_a_name_from_it_loads_it(place: Path, loads: list[str]) -> None:
    (place / "late.py").write_text(LATE)
    defer("late")
    from late import answer

    assert answer == 42


def test_once_loaded_it_is_a_module_as_any_other(place: Path, loads: list[str]) -> None:
    (place / "late.py").write_text(LATE)
    defer("late")
    import late

    assert late.answer == 42
    assert type(late) is ModuleType
    assert type(late.__loader__).__name__ == "SourceFileLoader"
    with pytest.raises(AttributeError, match="module 'late' has no attribute 'question'"):
        late.question  # noqa: B018 - looking is what is tested


def test_a_package_and_its_modules(place: Path, loads: list[str]) -> None:
    (place / "package").mkdir()
    (place / "package" / "__init__.py").write_text("from package.inner import answer\n" + LATE.split("\n")[1])
    (place / "package" / "inner.py").write_text(LATE)
    defer("package")
    import package

    assert loads == []
    assert package.answer == 42
    assert loads == ["package.inner", "package"]


def test_a_load_that_fails_is_tried_again(place: Path, loads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "late.py").write_text("if not ready: raise OSError('too many open files')\n" + LATE)
    monkeypatch.setattr("builtins.ready", False, raising=False)
    defer("late")
    import late

    with pytest.raises(OSError, match="too many"):
        late.answer  # noqa: B018
    monkeypatch.setattr("builtins.ready", True)
    assert late.answer == 42


def test_threads_that_look_while_it_is_loading_wait_until_it_is_whole(
    place: Path, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = Event(), Event()
    monkeypatch.setattr("builtins.pause", lambda: (begun.set(), go_on.wait(10)), raising=False)
    (place / "late.py").write_text("pause()\n" + LATE)
    defer("late")
    import late

    answers: list[int] = []
    first, *others = [Thread(target=lambda: answers.append(late.answer)) for _ in range(4)]
    first.start()
    assert begun.wait(10)
    for other in others:
        other.start()
    go_on.set()
    for thread in (first, *others):
        thread.join()
    assert (answers, loads) == ([42] * 4, ["late"])


def test_asyncio_does_without_ssl_until_there_is_tls() -> None:
    program = (
        "import sys; from ottla.base.deferred_imports import defer; defer('ssl', 'asyncio.sslproto')\n"
        "import asyncio; print('_ssl' in sys.modules)\n"
        "import ssl; context = ssl.create_default_context(); print('_ssl' in sys.modules)\n"
        "from asyncio import sslproto; print(sslproto.SSLProtocol.__module__)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True", "asyncio.sslproto"]
