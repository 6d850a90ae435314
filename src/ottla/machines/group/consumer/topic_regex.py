r"""Regular expressions over topic names, in RE2's syntax, in time that is linear in the name: `TopicRegex`.

A client's expression is matched on the coordinator, so it must not be able to hold it up, as expressions that
backtrack can. And a topic's name has only letters, digits and `._-`; so an atom of an expression is a set of those.

Theory of operation. The expression becomes a nondeterministic automaton (Thompson): states that either take a character
of a set, or lead on to others without one. It is in several states at once; each such set of states, and where each
character leads from it, is worked out the first time that it is needed, and kept.

Left out of RE2: `\b` and `\B`, `\pN` (classes of Unicode), `\C`. None of them says much about a topic's name.
"""

from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from ottla.base.errors import RemoteProtocolError

ALPHABET = frozenset(ascii_letters + digits + "._-")
_WORD = frozenset(ascii_letters + digits + "_")
_CLASSES = {
    "d": frozenset(digits),
    "D": ALPHABET - frozenset(digits),
    "w": _WORD,
    "W": ALPHABET - _WORD,
    "s": frozenset[str](),
    "S": ALPHABET,
}
_POSIX = {
    "alnum": frozenset(ascii_letters + digits),
    "alpha": frozenset(ascii_letters),
    "digit": frozenset(digits),
    "lower": frozenset(ascii_lowercase),
    "upper": frozenset(ascii_uppercase),
    "word": _WORD,
    "punct": frozenset("._-"),
    "graph": ALPHABET,
    "print": ALPHABET,
    "ascii": ALPHABET,
    "xdigit": frozenset(digits + "abcdefABCDEF"),
    "space": frozenset[str](),
    "blank": frozenset[str](),
    "cntrl": frozenset[str](),
}
_MOST_REPETITIONS = 1000
_MOST_STATES = 10_000
_BEGIN, _END = "begin", "end"

_Move = frozenset[str] | str | None
"""What a step needs: a character of a set, to be at the beginning or at the end, or nothing."""


class InvalidRegex(RemoteProtocolError):
    """An expression that cannot be understood, or that is too large."""


class TopicRegex:
    """`matches` takes the whole name."""

    def __init__(self, expression: str) -> None:
        self._moves: list[list[tuple[_Move, int]]] = []
        parser = _Parser(expression, self)
        self._start, self._accepting = parser.parse()
        self._known: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self._begin = self._reach({self._start}, {_BEGIN})

    def matches(self, name: str) -> bool:
        states = self._begin
        for character in name:
            following = self._known.setdefault(states, {})
            reached = following.get(character)
            if reached is None:
                reached = following[character] = self._step(states, character)
            if not reached:
                return False
            states = reached
        at = {_END} if name else {_BEGIN, _END}
        return self._accepting in self._reach(states, at)

    def _step(self, states: frozenset[int], character: str) -> frozenset[int]:
        taken = {
            target
            for state in states
            for move, target in self._moves[state]
            if isinstance(move, frozenset) and character in move
        }
        return self._reach(taken, set())

    def _reach(self, states: set[int] | frozenset[int], at: set[str]) -> frozenset[int]:
        """These states, and those that they lead on to without a character."""
        reached, left = set(states), list(states)
        while left:
            for move, target in self._moves[left.pop()]:
                if (move is None or (isinstance(move, str) and move in at)) and target not in reached:
                    reached.add(target)
                    left.append(target)
        return frozenset(reached)

    # For the parser

    def add_state(self) -> int:
        if len(self._moves) >= _MOST_STATES:
            raise InvalidRegex("the expression is too large")
        self._moves.append([])
        return len(self._moves) - 1

    def add_move(self, source: int, move: _Move, target: int) -> None:
        self._moves[source].append((move, target))


class _Parser:
    """By recursive descent; each rule returns where its part of the automaton begins and ends."""

    def __init__(self, expression: str, automaton: TopicRegex) -> None:
        self._text = _without_quotes(expression)
        self._at = 0
        self._automaton = automaton
        self._ignores_case = False

    def parse(self) -> tuple[int, int]:
        found = self._alternatives()
        if self._at < len(self._text):
            raise self._problem("a ) that closes nothing")
        return found

    def _problem(self, what: str) -> InvalidRegex:
        return InvalidRegex(f"{what}, at position {self._at} of {self._text!r}")

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise self._problem("the expression ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _skip(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) * found
        return found

    def _alternatives(self) -> tuple[int, int]:
        begin, end = self._automaton.add_state(), self._automaton.add_state()
        ignores_case = self._ignores_case
        while True:
            first, last = self._sequence()
            self._automaton.add_move(begin, None, first)
            self._automaton.add_move(last, None, end)
            if not self._skip("|"):
                self._ignores_case = ignores_case
                return begin, end

    def _sequence(self) -> tuple[int, int]:
        begin = end = self._automaton.add_state()
        while self._at < len(self._text) and self._peek() not in "|)":
            end = self._then(end, self._repeated())
        return begin, end

    def _then(self, end: int, part: tuple[int, int]) -> int:
        self._automaton.add_move(end, None, part[0])
        return part[1]

    def _repeated(self) -> tuple[int, int]:
        start = self._at
        ignores_case = self._ignores_case
        part = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return part
        part = self._repeat(part, start, ignores_case, *bounds)
        if self._quantifier() is not None:
            raise self._problem("a repetition of a repetition")
        return part

    def _quantifier(self) -> tuple[int, int | None] | None:
        bounds: tuple[int, int | None] | None = None
        match self._peek():
            case "*":
                bounds = 0, None
            case "+":
                bounds = 1, None
            case "?":
                bounds = 0, 1
            case "{":
                return self._counted()
        if bounds is not None:
            self._at += 1
            self._skip("?")  # Lazy or not makes no difference to a match of the whole.
        return bounds

    def _counted(self) -> tuple[int, int | None] | None:
        inside, closing, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closing or not low.isdecimal() or not (high.isdecimal() or not high):
            return None  # Then it is a brace like any other character.
        bounds = int(low), (int(high) if high else None if comma else int(low))
        if max(bounds[0], bounds[1] or 0) > _MOST_REPETITIONS or (bounds[1] is not None and bounds[1] < bounds[0]):
            raise self._problem("a repetition that is not allowed")
        self._at += len(inside) + 2
        self._skip("?")
        return bounds

    def _repeat(
        self, part: tuple[int, int], start: int, ignores_case: bool, low: int, high: int | None
    ) -> tuple[int, int]:
        """Further rounds are made by reading the part again: an automaton cannot be copied more simply."""
        automaton, after = self._automaton, self._at
        begin = end = automaton.add_state()
        done = automaton.add_state()
        rounds = max(low, 1) if high is None else high
        for number in range(rounds):
            if number:
                part = self._again(start, ignores_case)
            if number >= low:
                automaton.add_move(end, None, done)
            end = self._then(end, part)
        if high is None and rounds:
            automaton.add_move(end, None, part[0])
            if not low:
                automaton.add_move(begin, None, done)
        automaton.add_move(end, None, done)
        self._at = after
        return begin, done

    def _again(self, start: int, ignores_case: bool) -> tuple[int, int]:
        self._at, self._ignores_case = start, ignores_case
        return self._atom()

    def _atom(self) -> tuple[int, int]:
        character = self._take()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._atom_of(self._class())
            case ".":
                return self._atom_of(ALPHABET)
            case "^":
                return self._edge(_BEGIN)
            case "$":
                return self._edge(_END)
            case "\\":
                return self._escaped()
            case "*" | "+" | "?":
                raise self._problem("a repetition of nothing")
        return self._atom_of(frozenset(character))

    def _atom_of(self, characters: frozenset[str]) -> tuple[int, int]:
        if self._ignores_case:
            characters |= {character.swapcase() for character in characters}
        return self._edge(characters)

    def _edge(self, move: _Move) -> tuple[int, int]:
        begin, end = self._automaton.add_state(), self._automaton.add_state()
        self._automaton.add_move(begin, move, end)
        return begin, end

    def _group(self) -> tuple[int, int]:
        ignores_case = self._ignores_case
        if self._skip("?"):
            if self._skip("P<") or self._skip("<"):
                if self._peek() in ("=", "!"):
                    raise self._problem("looking behind is not supported")
                while self._take() != ">":
                    pass
            elif not self._skip(":") and self._flags():
                return self._edge(None)  # (?i) alone is for what follows.
        found = self._alternatives()
        if not self._skip(")"):
            raise self._problem("a ( that is not closed")
        self._ignores_case = ignores_case
        return found

    def _flags(self) -> bool:
        """Whether the flags are all there is between the parentheses."""
        is_on = True
        while (flag := self._take()) not in ":)":
            if flag not in "imsU-":
                raise self._problem("a group of an unknown kind")
            is_on = is_on and flag != "-"
            if flag == "i":
                self._ignores_case = is_on
        return flag == ")"

    def _escaped(self) -> tuple[int, int]:
        character = self._take()
        if character in "Az":
            return self._edge(_BEGIN if character == "A" else _END)
        return self._atom_of(self._escaped_set(character))

    def _escaped_set(self, character: str) -> frozenset[str]:
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isalnum():
            raise self._problem(f"\\{character} is not supported")
        return frozenset(character)

    def _class(self) -> frozenset[str]:
        negated = self._skip("^")
        found: set[str] = set()
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            if self._skip("[:"):
                found |= self._posix()
                continue
            one = self._take()
            if one == "\\":
                escaped = self._escaped_set(self._take())
                if len(escaped) != 1:
                    found |= escaped
                    continue
                (one,) = escaped
            if self._peek() == "-" and self._peek(2)[1:] not in ("", "]"):
                self._at += 1
                other = self._take()
                other = self._take() if other == "\\" else other
                if other < one:
                    raise self._problem("a range that runs backwards")
                found |= {character for character in ALPHABET if one <= character <= other}
            else:
                found.add(one)
        self._at += 1
        return ALPHABET - found if negated else frozenset(found)

    def _posix(self) -> frozenset[str]:
        name, closing, _ = self._text[self._at :].partition(":]")
        negated = name.startswith("^")
        characters = _POSIX.get(name.lstrip("^"))
        if not closing or characters is None:
            raise self._problem("a class that is not known")
        self._at += len(name) + 2
        return ALPHABET - characters if negated else characters


def _without_quotes(expression: str) -> str:
    r"""Everything between `\Q` and `\E` stands for itself."""
    parts: list[str] = []
    position = 0
    while position < len(expression):
        pair = expression[position : position + 2]
        if pair == "\\Q":
            quoted, _, rest = expression[position + 2 :].partition("\\E")
            parts += [character if character.isalnum() else f"\\{character}" for character in quoted]
            position = len(expression) - len(rest)
        else:
            taken = pair if pair.startswith("\\") else pair[:1]
            parts.append(taken)
            position += len(taken)
    return "".join(parts)
