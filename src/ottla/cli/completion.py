"""`ottla completion bash|zsh|fish`: what makes the shell complete commands, options, topics and groups.

The script that is printed asks `ottla complete -- WORDS` at every Tab, which prints what the last word may become. So
it stays right when commands change. Topics and groups are asked of the cluster that the words before name, with little
patience: a shell that hangs is worse than one that knows less.
"""

import os
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ottla.cli.options.table import SERVERS_VARIABLE

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

SHELLS: Final = ("bash", "zsh", "fish")
_PATIENCE_S: Final = 1.0

_BASH: Final = """\
# ottla completion bash: put this into ~/.bashrc:  eval "$(ottla completion bash)"
_ottla_complete() {{
    local IFS=$'\\n'
    COMPREPLY=($(ottla complete --line "${{COMP_LINE:0:COMP_POINT}}" 2>/dev/null))
}}
complete -o default -F _ottla_complete {names}
"""
_ZSH: Final = """\
# ottla completion zsh: put this into ~/.zshrc, after compinit:  eval "$(ottla completion zsh)"
_ottla_complete() {{
    local -a found
    found=("${{(@f)$(ottla complete -- "${{(@)words[1,CURRENT]}}" 2>/dev/null)}}")
    if (( ${{#found}} )) && [[ -n "$found[1]" ]]; then compadd -a found; else _files; fi
}}
compdef _ottla_complete {names}
"""
_FISH: Final = """\
# ottla completion fish: put this into ~/.config/fish/config.fish:  ottla completion fish | source
function __ottla_complete
    ottla complete -- (commandline -opc) (commandline -ct) 2>/dev/null
end
for name in {names}
    complete --command $name --arguments '(__ottla_complete)'
end
"""


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in SHELLS:
        print({"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[arguments[0]].format(names=" ".join(programs())), end="")
        return 0
    known = "|".join(SHELLS)
    if arguments[:1] in (["-h"], ["--help"]):
        print(
            f"usage: ottla completion {known}\n\nPrints what makes the shell complete commands; it says how to use it."
        )
        return 0
    print(f"usage: ottla completion {known}", file=sys.stderr)
    return 2


def programs() -> list[str]:
    from ottla.cli.kafka import OTHERS, TOOLS

    return ["ottla", *(f"kafka-{name}" for name in (*TOOLS, *OTHERS, "server-start", "dump-log"))]


def complete(arguments: list[str]) -> int:
    """`ottla complete -- PROGRAM WORD… WORD`, of which the last may be empty; or `--line TEXT`, for bash, which
    takes words with a colon apart.
    """
    words = arguments[1:] if arguments[:1] == ["--"] else arguments
    if arguments[:1] == ["--line"]:
        words = _words_of(arguments[1])
    for word in candidates(words):
        print(word)
    return 0


def _words_of(line: str) -> list[str]:
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:  # a quote that is still open
        return []
    return [*words, ""] if line[-1:].isspace() else words


def candidates(words: Sequence[str]) -> list[str]:
    """What the last word may become, in order."""
    if not words:
        return []
    program, *given = words
    name = os.path.basename(program).removesuffix(".sh")
    current = given.pop() if given else ""
    if name == "ottla":
        from ottla.cli.main import COMMANDS

        if not given:
            return _beginning(current, COMMANDS)
        command, *given = given
        if command == "completion":
            return _beginning(current, SHELLS)
        if command not in COMMANDS:
            return []
        found: str | None = COMMANDS[command].module
    else:
        found = _module_of(name)
    return [] if found is None else _beginning(current, _next_words(found, given, current))


def _module_of(name: str) -> str | None:
    from ottla.cli.kafka import OTHERS, TOOLS

    short = name.removeprefix("kafka-")
    if short in TOOLS:
        return TOOLS[short].module
    return {**OTHERS, "dump-log": "ottla.cli.dump_log"}.get(short)


def _beginning(current: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(current)})


def _next_words(module: str, given: Sequence[str], current: str) -> list[str]:
    loaded = import_module(module)
    if (program := getattr(loaded, "PROGRAM", None)) is not None:
        return _of_options(program, given, current)
    parser = _parser_of(loaded)
    return [] if parser is None else _of_parser(parser, given, current)


def _parser_of(module: object) -> ArgumentParser | None:
    for name in ("argument_parser", "_parser"):
        if callable(make := getattr(module, name, None)):
            needs_name = bool(make.__code__.co_argcount)
            made: ArgumentParser = make("ottla") if needs_name else make()
            return made
    if callable(make := getattr(module, "short_command", None)):
        of_short: ArgumentParser = make().parser
        return of_short
    return None


def _of_options(program: object, given: Sequence[str], current: str) -> list[str]:
    """Of a tool in Kafka's manner: options, and what follows those that take a topic or a group."""
    options = program.by_name  # type: ignore[attr-defined]
    last = given[-1].lstrip("-") if given and given[-1].startswith("-") else ""
    if last in options and options[last].kind:
        if last == "topic":
            return _topics(given)
        if last == "group":
            return _groups(given)
        return []
    return [f"--{name}" for name, option in options.items() if not option.why_not]


def _of_parser(parser: ArgumentParser, given: Sequence[str], current: str) -> list[str]:
    positionals = [action for action in parser._actions if not action.option_strings]
    rest, seen = list(given), 0
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            option = parser._option_string_actions.get(word)
            if option is not None and option.nargs != 0:
                if not rest:
                    return _values_of(option, given)
                rest.pop(0)
            continue
        if seen < len(positionals):
            action = positionals[seen]
            if isinstance(action, _SubParsersAction):
                chosen = action.choices.get(word)
                return [] if chosen is None else _of_parser(chosen, rest, current)
            if action.nargs not in ("+", "*"):
                seen += 1
    names = [name for name in parser._option_string_actions if name.startswith("--")]
    if current.startswith("-"):
        return names
    return _values_of(positionals[seen], given) if seen < len(positionals) else names


def _values_of(action: object, given: Sequence[str]) -> list[str]:
    choices, metavar = getattr(action, "choices", None), getattr(action, "metavar", None)
    if choices:
        return [str(choice) for choice in choices]
    if metavar in ("TOPIC", "SOURCE", "DESTINATION", "TOPIC[:PARTITION]") or getattr(action, "dest", "") == "topic":
        return _topics(given)
    if metavar == "GROUP" or getattr(action, "dest", "") == "group":
        return _groups(given)
    return []


# What the cluster has


def _topics(given: Sequence[str]) -> list[str]:
    return _asked(given, lambda admin: [topic.name for topic in admin.list_topics(timeout=_PATIENCE_S)])


def _groups(given: Sequence[str]) -> list[str]:
    return _asked(given, lambda admin: [one.group_id for one in admin.list_groups(timeout=_PATIENCE_S)])


def _asked(given: Sequence[str], ask: "Callable[[Admin], list[str]]") -> list[str]:
    from ottla.base.errors import OttlaError
    from ottla.cli.sessions import open_admin

    servers = _after(given, "-b", "--bootstrap-server") or os.environ.get(SERVERS_VARIABLE) or "localhost:9092"
    file = _after(given, "--command-config")
    try:
        with open_admin(servers, config_file=file, is_quiet=True) as admin:
            return ask(admin)
    except (OttlaError, OSError):
        return []


def _after(given: Sequence[str], *names: str) -> str | None:
    for word, following in pairwise(given):
        if word in names:
            return following
    return None
