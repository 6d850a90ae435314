"""What can be typed at the shell, and what it prints. Everything goes to one writer, complaints too, as in Kafka."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.cli.metadata_shell.paths import Found, absolute, find, node_at
from ottla.cli.metadata_shell.tree import Directory, Node

_COLUMN_GAP: Final = 2
_INDENT: Final = "  "
Print = Callable[[str], None]


class Leave(OttlaError):
    """`exit` was typed."""


class Command(NamedTuple):
    run: Callable[["Session", list[str]], None]
    summary: str
    argument: str = ""
    """How the usage shows it: `[name]` may be left out, and `...` may be many."""
    about: str = ""
    in_prompt_only: bool = False

    @property
    def least(self) -> int:
        return int(bool(self.argument) and not self.argument.startswith("["))

    @property
    def most(self) -> int | None:
        return None if "..." in self.argument else int(bool(self.argument))

    def usage(self, name: str) -> str:
        lines = [f"{name}: {self.summary}", "", f"usage: {name} {self.argument}".rstrip()]
        if self.argument:
            lines += ["", f"  {self.argument.strip('[]. ').split()[0]:20}  {self.about}"]
        return "\n".join(lines)


class Session:
    """A person's place in the tree, and what they have typed."""

    def __init__(self, root: Directory, write: Print, *, columns: int | None = None, is_prompt: bool = False) -> None:
        self.root = root
        self.write = write
        self.columns = columns
        """How wide `ls` may print; None for one name a line."""
        self.is_prompt = is_prompt
        self.working: tuple[str, ...] = ()
        self.history: list[str] = []

    @property
    def commands(self) -> list[str]:
        return [name for name, command in COMMANDS.items() if self.is_prompt or not command.in_prompt_only]

    def run(self, words: Sequence[str]) -> None:
        """Raises `Leave` for `exit`."""
        if not words:
            return None
        name, *arguments = words
        if name not in self.commands:
            choices = ", ".join(f"'{choice}'" for choice in self.commands)
            return self.write(f"invalid choice: '{name}' (choose from {choices})")
        command = COMMANDS[name]
        plain = [word for word in arguments if not _is_option(word)]
        if len(plain) < len(arguments):
            unknown = next(word for word in arguments if _is_option(word))
            return self.write(f"unrecognized arguments: '{unknown}'")
        if len(arguments) < command.least:
            return self.write("too few arguments")
        if command.most is not None and len(arguments) > command.most:
            return self.write(f"unrecognized arguments: '{arguments[command.most]}'")
        return command.run(self, arguments)

    def find(self, command: str, pattern: str, complaint: str) -> list[Found]:
        found = list(find(self.root, self.working, pattern))
        if not found:
            self.write(f"{command}: {pattern}: {complaint}")
        return found


def _is_option(word: str) -> bool:
    return word.startswith("-") and not word[1:].isdecimal()


def _cat(session: Session, targets: list[str]) -> None:
    for target in targets:
        for found in session.find("cat", target, "No such file or directory."):
            is_directory = isinstance(found.node, Directory)
            session.write(f"cat: {found.shown}: Is a directory" if is_directory else _text(found.node))


def _cd(session: Session, targets: list[str]) -> None:
    target = targets[0] if targets else "/"
    for found in session.find("cd", target, "no such directory."):
        if isinstance(found.node, Directory):
            session.working = found.path
        else:
            session.write(f"cd: {target}: not a directory.")


def _exit(session: Session, _: list[str]) -> None:
    raise Leave


def _find(session: Session, targets: list[str]) -> None:
    for target in targets or ["."]:
        for found in session.find("find", target, "no such file or directory."):
            _print_paths(session, found.shown, found.node)


def _print_paths(session: Session, path: str, node: Node) -> None:
    session.write(path)
    if isinstance(node, Directory):
        for name in node.names():
            _print_paths(session, f"{path}/{name}" if path != "/" else f"/{name}", node.nodes[name])


def _help(session: Session, _: list[str]) -> None:
    width = max(map(len, COMMANDS))
    session.write("The metadata of a cluster is shown as directories and files.\n")
    for name, command in COMMANDS.items():
        session.write(f"  {name:{width}}  {command.summary}")
    session.write("\nNames may have patterns: * for any characters, ? for one, {a,b} for either.")


def _history(session: Session, counts: list[str]) -> None:
    count = len(session.history)
    if counts:
        if not counts[0].lstrip("-").isdecimal():
            return session.write(f"argument numEntriesToShow: could not convert '{counts[0]}' to Integer")
        count = int(counts[0])
    first = max(0, len(session.history) - max(0, count))
    for number, line in enumerate(session.history[first:], first):
        session.write(f"{number:5d}  {line}")
    return None


def _ls(session: Session, targets: list[str]) -> None:
    files: list[str] = []
    directories: list[tuple[str, Directory]] = []
    for target in targets or ["."]:
        for found in session.find("ls", target, "no such file or directory."):
            if isinstance(found.node, Directory):
                directories.append((found.path[-1] if found.path else "", found.node))
            else:
                files.append(found.path[-1])
    _print_names(session, files)
    for number, (name, directory) in enumerate(directories):
        if len(files) + len(directories) > 1:
            session.write(f"\n{name}:" if files or number else f"{name}:")
        _print_names(session, directory.names())


def _print_names(session: Session, names: list[str]) -> None:
    if not names:
        return None
    if session.columns is None:
        return session.write("\n".join(names))
    width = max(map(len, names)) + _COLUMN_GAP
    across = max(1, session.columns // width)
    down = -(-len(names) // across)
    for row in range(down):
        session.write("".join(f"{name:{width}}" for name in names[row::down]).rstrip())
    return None


def _man(session: Session, names: list[str]) -> None:
    if names[0] in COMMANDS:
        session.write(COMMANDS[names[0]].usage(names[0]))
    else:
        session.write(f"man: unknown command {names[0]}. Type help to get a list of commands.")


def _pwd(session: Session, _: list[str]) -> None:
    session.write(absolute(session.working))


def _tree(session: Session, targets: list[str]) -> None:
    for target in targets:
        for found in session.find("tree", target, "No such file or directory."):
            _print_tree(session, found.node, "")


def _print_tree(session: Session, node: Node, indent: str) -> None:
    if not isinstance(node, Directory):
        return session.write(f"{indent}{_text(node)}")
    for name in node.names():
        session.write(f"{indent}{name}:")
        _print_tree(session, node.nodes[name], indent + _INDENT)
    return None


def _text(node: Node) -> str:
    assert not isinstance(node, Directory), "only files have text"
    return node()


def completions(session: Session, typed: str) -> list[str]:
    """The paths that begin with what is typed; directories end in a slash."""
    parent, _, _ = typed.rpartition("/")
    prefix = typed[: len(parent) + 1] if "/" in typed else ""
    found = list(find(session.root, session.working, prefix)) if prefix else None
    node = found[0].node if found else node_at(session.root, session.working) if not prefix else None
    if not isinstance(node, Directory):
        return []
    paths = (prefix + name + ("/" if isinstance(node.nodes[name], Directory) else "") for name in node.names())
    return [path for path in paths if path.startswith(typed)]


COMMANDS: Final = {
    "cat": Command(_cat, "Show what is in files.", "targets ...", "the files"),
    "cd": Command(_cd, "Go to another directory.", "[target]", "the directory; the root if none is named", True),
    "exit": Command(_exit, "Leave the shell.", in_prompt_only=True),
    "find": Command(_find, "Print the paths of all nodes below a directory.", "[paths ...]", "where to begin"),
    "help": Command(_help, "Print this list.", in_prompt_only=True),
    "history": Command(_history, "Print what was typed.", "[numEntriesToShow]", "how many lines, at most", True),
    "ls": Command(_ls, "List what is in directories.", "[targets ...]", "the directories and files"),
    "man": Command(_man, "Say how a command is used.", "cmd", "the command", True),
    "pwd": Command(_pwd, "Print the directory you are in.", in_prompt_only=True),
    "tree": Command(_tree, "Print directories with all that is in them.", "targets ...", "the directories and files"),
}
