"""The same command with Apache Kafka's tool and with ours, against the same broker, and whether they print the same.

A command that changes something is about a thing of its own for each of the two: `{me}` in it is `zebra` or `zorro`.
Lines about the other's things are left out of what is compared. Ids, times and ports are taken out; so are Java's
stack traces. What else differs is in the table `DIFFERENCES`, each with its reason.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.tools.kafkas_tools import KafkasTools, Printed

TIMEOUT_S: Final = 60
NAMES: Final = ("zebra", "zorro")


NOTHING: Final = "(?!)"
"""What matches nowhere: ours does not print it."""


class Difference(NamedTuple):
    """Where the two may print different things; both patterns become the same word."""

    reason: str
    kafkas: str
    ours: str


DIFFERENCES: Final = (
    Difference(
        "--version names ours, too",
        r"^4\.3\.1$",
        r"^4\.3\.1 \(ottla [\w.]+\)$",
    ),
    *(
        Difference("what a broker leaves unsaid is told in our words", rf"{text}", rf"{text}")
        for text in (
            r"(?<=UnknownTopicOrPartitionException: ).*$",
            r"(?<=GroupIdNotFoundException: )(?!Group \w+ not found).*$",
            r"(?<=GroupNotEmptyException: ).*$",
            r"(?<=GroupSubscribedToTopicException: ).*$",
            r"(?<=OffsetOutOfRangeException: ).*$",
            r"(?<=DelegationTokenNotFoundException: ).*$",
            r"(?<=InvalidPrincipalTypeException: ).*$",
            r"(?<=UnsupportedByAuthenticationException: ).*$",
        )
    ),
    Difference(
        "Java names the class of some failures, and not of others",
        r"(?<=command failed due to )This server does not host this topic-partition\.$",
        r"(?<=command failed due to )org.*UnknownTopicOrPartitionException: .*$",
    ),
    Difference(
        "what a broker leaves unsaid is told in our words",
        r"(?<=transactional-id `nope`: ).*(?=\. Enable)",
        r"(?<=transactional-id `nope`: ).*(?=\. Enable)",
    ),
    Difference(
        "what a broker leaves unsaid is told in our words",
        r"(?<=Failed to describe 1 topics: ).*(?=\. Enable)",
        r"(?<=Failed to describe 1 topics: ).*(?=\. Enable)",
    ),
    Difference("an advertisement", r"^The consumer rebalance protocol \(KIP-848\) is production-ready!.*\n?", NOTHING),
    Difference(
        "Java prints some failures twice",
        r"\Ajava\.(?:util\.concurrent|lang|time)\.(?!ClassNot)\S+: .*\n?",
        NOTHING,
    ),
    Difference("Java prints some failures twice", r"^org\.apache\.\S+UnknownTopicOrPartitionException: .*$", NOTHING),
    Difference(
        "Java tries a file as one of another format first, and complains", r"^com\.fasterxml\.(?:.*\n?)*", NOTHING
    ),
    *(
        Difference("the order of a hash table", text, text)
        for text in (
            r"(?<=Valid states are: ).*",
            r"(?<=takes one of these options: ).*",
            r"(?<=takes the following options: ).*",
            r"(?<=following scenarios: ).*",
        )
    ),
    Difference("the libraries of regular expressions differ in words", r"missing closing \)", r"missing \)"),
    Difference(
        "an address that cannot be resolved is told at once, with the address",
        r"Failed to create new KafkaAdminClient",
        r"No resolvable bootstrap urls.*",
    ),
    Difference(
        "options of a combination in the order of a hash table",
        r'combination "\[\[.*?\]\]"',
        r'combination "\[\[.*?\]\]"',
    ),
    Difference("Java says where in Java it was", r"^(?:java\.io\.IOException: )?Unable to read", "^Unable to read"),
    Difference(
        "the order of options",
        r"--property and --formatter-property",
        r"--formatter-property and --property",
    ),
    Difference("metadata.version 31 is in 4.3 and not supported yet", r"4\.3-IV0, 4\.4-IV0$", r"4\.3-IV0$"),
    Difference(
        "a file that is not there: our words",
        r"(?:^|(?<=^Error: ))/no/such$",
        r"(?:^|(?<=^Error: ))/no/such: No such file or directory$",
    ),
    Difference("Java names the class of some failures, and not of others", r"^joptsimple\.\w+: ", NOTHING),
    Difference("Java prints some failures twice", r"^org\.apache\.\S+InvalidReplicationFactorException: .*$", NOTHING),
    Difference(
        "what is wrong with JSON: our words",
        r"(?<=^Error: )(?:The input string |Unrecognized token )(?:.*\n?)*",
        r"(?<=^Error: )The input string is not a valid JSON: .*",
    ),
    Difference(
        "an id that is none: our words",
        r"Input string `\w+` decoded as \d+ bytes, .*UUID$",
        r"Input string `\w+` is not the id of a topic.*$|not a UUID of 22 base64 characters: .*$",
    ),
)

_HELP: Final = re.compile(r"^Option(?: \(\* = required\))? +Description.*", re.MULTILINE | re.DOTALL)
_USAGE: Final = re.compile(r"^usage: .*?(?=^\S*: error: )", re.MULTILINE | re.DOTALL)
_TRACE: Final = re.compile(r"^(?:\tat |Caused by: |\tSuppressed: |\t\.\.\. \d+ more).*\n?", re.MULTILINE)
_TRACED: Final = re.compile(r"(?<=\n)[\w.$]+(?:Exception|Error)(?:: .*)?\n(?=\tat )")
_ERROR: Final = re.compile(r"(?<=<usage>\n).*", re.DOTALL)
_OF_CONFIGS: Final = re.compile(r"(Error while executing config command .*\n)java.util.concurrent.ExecutionException: ")
_VOLATILE: Final = (
    (re.compile(r"^ (?=\t\(principal)", re.MULTILINE), ""),  # before the first one of a hash table
    (re.compile(r"Epoch: \d+$", re.MULTILINE), "Epoch: NUMBER"),
    (re.compile(r"(?<=^HighWatermark:          )\d+", re.MULTILINE), "NUMBER"),
    (re.compile(r"(?<=\t)\d+ +(?=\t0  \t)"), "NUMBER"),
    (re.compile(r'(?<="size":)\d+'), "NUMBER"),
    (re.compile(r"(?<=\t)\d+ +(?=\t(?:Complete|Ongoing|Empty|\d+ +\t(?:Complete|Ongoing)))"), "NUMBER"),
    (re.compile(r"^\d+ +(?=\t\d+ +\t)", re.MULTILINE), "NUMBER"),
    (re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}=="), "HMAC"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d\b(?!:)"), "DATE"),
    (re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "-UUID"),
    (re.compile(r"(?<![\w/+-])(?!\w+Exception)[A-Za-z0-9_/+-]{22}(?![\w/+-])"), "UUID"),
    (re.compile(r"\b1\d{12}\b"), "TIME"),
    (re.compile(r"\b\d+ ms ago *"), "TIME ago"),
    (re.compile(r"(?<=TIME)( +\t)\d+ +(?=\t)"), r"\1NUMBER"),
)


class Beside:
    def __init__(self, kafkas: KafkasTools, bootstrap: str, controller: str, directory: Path) -> None:
        self.kafkas = kafkas
        self.bootstrap = bootstrap
        self.controller = controller
        self.directory = directory

    def same(self, command: str, *, input: str = "", alone: bool = False, ordered: bool = True) -> Printed:
        """Runs it with both, and returns what both printed, normalised. `{at}` is the broker's address option."""
        kafkas, ours = (self.printed(name, command, input=input, alone=alone) for name in NAMES)
        left, right = (self._normal(printed, number, ordered) for number, printed in enumerate((kafkas, ours)))
        assert right == left, f"$ {command}\n--- Apache Kafka\n{_shown(left)}\n--- ours\n{_shown(right)}"
        return right

    def printed(self, name: str, command: str, *, input: str = "", alone: bool = False) -> Printed:
        tool, *words = (self._filled(word, name) for word in shlex.split(command))
        if name == "zorro":
            return our_tool(tool, *words, input=input)
        run = self.kafkas.alone if alone else self.kafkas
        return run(tool, *words, input=input)

    def begin(self, name: str, command: str) -> subprocess.Popen[str]:
        """A tool that runs until it is stopped, which is for the caller."""
        tool, *words = (self._filled(word, name) for word in shlex.split(command))
        if name == "zorro":
            return subprocess.Popen([str(_script(tool)), *words], stdout=subprocess.PIPE, text=True)
        return self.kafkas.begin(tool, *words)

    def transcript(self, name: str, commands: Iterable[str]) -> list[Printed]:
        """What one of the two prints, normalised: for a scene that each has to play from its beginning to its end."""
        number = NAMES.index(name)
        return [self._normal(self.printed(name, command), number, ordered=True) for command in commands]

    def both(self, command: str, *, input: str = "") -> None:
        """Prepares a scene: each its own."""
        for name in NAMES:
            printed = self.printed(name, command, input=input)
            assert printed.exit_code == 0, _shown(printed)

    def file(self, name: str, content: str) -> None:
        """A file for each of the two; `{files}/NAME` in a command is its path."""
        for me in NAMES:
            path = self.directory / me / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content.replace("{me}", me))

    def _filled(self, word: str, me: str) -> str:
        word = word.replace("{me}", me).replace("{files}", str(self.directory / me))
        return word.replace("{at}", f"--bootstrap-server={self.bootstrap}").replace("{broker}", self.bootstrap).replace(
            "{controller}", self.controller
        )  # fmt: skip

    def _normal(self, printed: Printed, number: int, ordered: bool) -> Printed:
        out, err = (self._normal_text(text, number) for text in (printed.out, printed.err))
        if not ordered:
            out = "\n".join(sorted(filter(None, out.splitlines())))
        return Printed(printed.exit_code, out, err)

    def _normal_text(self, text: str, number: int) -> str:
        me, other = NAMES[number], NAMES[1 - number]
        text = _OF_CONFIGS.sub(r"\1told: ", text)
        text = _TRACE.sub("", _TRACED.sub("", text))
        text = _USAGE.sub("<usage>\n", _HELP.sub("<help>", text))
        # argparse4j stretches its lines to the same width, and breaks them at hyphens.
        text = _ERROR.sub(lambda error: " ".join(error[0].split()).replace(" -- ", " --"), text)
        text = text.replace("-b/--bootstrap-server", "--bootstrap-server")  # Our tools have a short name for it.
        text = "".join(line for line in text.splitlines(keepends=True) if other not in line)
        text = text.replace(me, "{me}").replace(self.bootstrap, "{broker}").replace(self.controller, "{controller}")
        for pattern, name in _VOLATILE:
            text = pattern.sub(name, text)
        for difference in DIFFERENCES:
            pattern = difference.ours if number else difference.kafkas
            word = "" if difference.ours == NOTHING else f"<{difference.reason}>"
            text = re.sub(pattern, word, text, flags=re.MULTILINE)
        return text.rstrip("\n")


def _script(name: str) -> Path:
    return Path(sysconfig.get_path("scripts")) / name


def our_tool(name: str, *words: str, input: str = "") -> Printed:
    command = [str(_script(name)), *words]
    done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=TIMEOUT_S)
    return Printed(done.returncode, done.stdout, done.stderr)


def _shown(printed: Printed) -> str:
    return f"{printed.out}{printed.err}-> {printed.exit_code}"
