"""Handlers of signals belong to the program: commands of ours touch them, and no library does."""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ottla"
TOUCHING = {"signal", "set_wakeup_fd", "siginterrupt", "pthread_sigmask", "setitimer", "add_signal_handler"}
PROGRAMS = {
    "runtime/cleaner_worker.py": "the program of a process of its own",
}


def touches(source: str) -> list[int]:
    """The lines that set how a signal is handled: `signal.signal(…)`, whatever the names were made of it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in ("signal", "_signal"):
            found += [node.lineno for name in node.names if name.name in TOUCHING]
        elif isinstance(node, ast.Import):
            found += [node.lineno for name in node.names if name.name == "_signal"]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TOUCHING:
            found.append(node.lineno)
    return found


def libraries() -> list[str]:
    paths = (path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")))
    return [path for path in paths if not path.startswith("cli/") and path not in PROGRAMS]


def test_no_library_touches_the_handlers_of_signals() -> None:
    found = [f"{path}:{line}" for path in libraries() for line in touches((SOURCE / path).read_text())]
    assert found == [], "leave it to the program: a command (`ottla.cli`) or the application"


def test_the_check_finds_what_it_looks_for() -> None:
    for line in (
        "import signal\nsignal.signal(signal.SIGINT, f)",
        "from _signal import signal as set_handler",
        "loop.add_signal_handler(2, f)",
    ):
        assert touches(line), line
    assert not touches("import signal\nos.kill(1, signal.SIGKILL)")
    assert all(touches((SOURCE / path).read_text()) for path in PROGRAMS)
