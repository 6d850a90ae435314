"""Dates as Java's SimpleDateFormat writes and reads them, in English and in UTC.

    dates = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSSX")
    dates.text(0)                          # 1970-01-01T00:00:00.000Z
    dates.moment("2026-11-18T01:02:03Z")   # milliseconds since 1970, or ValueError

A pattern is a row of letters and of text that stands for itself. Reading is lenient, as it is in Java: numbers may be
out of their range (the 40th of a month is a day of the next one), numbers that touch have as many digits as letters,
others have as many as there are, and what stands behind all of it is ignored. Days before 15 October 1582 are Julian.

What is different: a year of two digits is one of 1950 to 2049, where Java looks at today; of the zones' names only UTC
and GMT are read; weeks (`Y`, `w`, `W`, `F`) are written but not read, and begin on Sunday.
"""

import re
from typing import Final, NamedTuple

DAY_MS: Final = 86_400_000
_CUTOVER_DAY: Final = -141_427
_NUMBER: Final = re.compile(r"-?\d+")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
_NUMBERS: Final = ("y", "Y", "w", "W", "D", "d", "F", "u", "H", "k", "K", "h", "m", "s", "S")
_WEEKS: Final = "YwWF"
_FINEST: Final = {"S": 1, "s": 1_000, "m": 60_000} | dict.fromkeys("HkKha", 3_600_000)
_NAMES: Final[dict[str, dict[str, int]]] = {
    "M": {name.lower(): number for number, whole in enumerate(_MONTHS) for name in (whole, whole[:3])},
    "E": {name.lower(): number for number, whole in enumerate(_DAYS) for name in (whole, whole[:3])},
    "a": {"am": 0, "pm": 1},
    "G": {"bc": 0, "ad": 1, "before christ": 0, "anno domini": 1},
    "z": {"utc": 0, "gmt": 0, "coordinated universal time": 0, "greenwich mean time": 0},
}
_LEAST: Final = -(1 << 63)


class _Piece(NamedTuple):
    """Letters of a pattern, or text that stands for itself (`letter` is empty)."""

    letter: str
    times: int
    text: str


class _Calendar(NamedTuple):
    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int
    """Monday is 0."""


class DateFormat:
    """Raises `ValueError` for a pattern that Java refuses."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._pieces = _pieces(pattern)
        letters = [piece.letter for piece in self._pieces if piece.letter]
        self.finest_ms = min((_FINEST.get(letter, DAY_MS) for letter in letters), default=DAY_MS)
        """Moments within one of these, counted from 1970, have the same text."""

    def text(self, ms: int) -> str:
        days, of_day = divmod(ms, DAY_MS)
        calendar = _calendar(days)
        return "".join(_written(piece, calendar, of_day) for piece in self._pieces)

    def moment(self, text: str) -> int:
        """Milliseconds since 1970. Raises `ValueError`."""
        found = _Found()
        at = 0
        for number, piece in enumerate(self._pieces):
            if not piece.letter:
                if not text.startswith(piece.text, at):
                    raise ValueError(f"no {piece.text!r} at {at}")
                at += len(piece.text)
                continue
            following = self._pieces[number + 1] if number + 1 < len(self._pieces) else None
            touches = following is not None and _is_number(following)
            at = _read(piece, text, at, found, touches=touches)
        return found.moment()


def _is_number(piece: _Piece) -> bool:
    return piece.letter in _NUMBERS or (piece.letter in ("M", "L") and piece.times <= 2)


def _pieces(pattern: str) -> list[_Piece]:
    made: list[_Piece] = []
    literal = ""
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            if pattern[at + 1 : at + 2] == "'":
                literal += "'"
                at += 2
                continue
            at += 1
            while True:
                end = pattern.find("'", at)
                if end < 0:
                    raise ValueError("Unterminated quote")
                literal += pattern[at:end]
                at = end + 1
                if pattern[at : at + 1] != "'":
                    break
                literal += "'"
                at += 1
            continue
        if not (letter.isascii() and letter.isalpha()):
            literal += letter
            at += 1
            continue
        if letter not in _LETTERS:
            raise ValueError(f"Illegal pattern character '{letter}'")
        count = len(pattern[at:]) - len(pattern[at:].lstrip(letter))
        if letter == "X" and count > 3:
            raise ValueError(f"invalid ISO 8601 format: length={count}")
        if literal:
            made.append(_Piece("", 0, literal))
            literal = ""
        made.append(_Piece(letter, count, ""))
        at += count
    return made + ([_Piece("", 0, literal)] if literal else [])


# Days to calendars and back. A year here may be 0 or less: 0 is 1 BC.


def _gregorian_days(year: int, month: int, day: int) -> int:
    """Days since 1970; months count from 1. Any day number is taken."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _julian_days(year: int, month: int, day: int) -> int:
    shifted = year - (month <= 2)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 + of_year - 719_470


def calendar_of(days: int) -> "tuple[int, int, int]":
    """Year, month (from 1) and day, as Java's calendar has them; a year before 1 is one of its era, counted back."""
    found = _calendar(days)
    return (found.year if found.year > 0 else 1 - found.year), found.month, found.day


def days_of(year: int, month: int, day: int) -> int:
    """As Java's lenient calendar counts them: months from 0, and neither they nor days have a range."""
    more, of_year = divmod(month, 12)
    days = _gregorian_days(year + more, of_year + 1, day)
    return days if days >= _CUTOVER_DAY else _julian_days(year + more, of_year + 1, day)


def _calendar(days: int) -> _Calendar:
    if days >= _CUTOVER_DAY:
        era, of_era = divmod(days + 719_468, 146_097)
        years = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * years + years // 4 - years // 100)
        years += era * 400
    else:
        era, of_era = divmod(days + 719_470, 1_461)
        years = min(of_era // 365, 3)
        of_year = of_era - 365 * years
        years += era * 4
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = years + (month <= 2)
    first = days_of(year, 0, 1)
    return _Calendar(year, month, day, days - first + 1, (days + 3) % 7)


def _written(piece: _Piece, calendar: _Calendar, of_day: int) -> str:
    count = piece.times
    hour = of_day // 3_600_000
    match piece.letter:
        case "":
            return piece.text
        case "y" | "Y":
            shown = _week(calendar)[0] if piece.letter == "Y" else calendar.year
            if shown <= 0 and piece.letter == "y":
                shown = 1 - shown
            return f"{shown % 100:02}" if count == 2 else f"{shown:0{count + (shown < 0)}}"
        case "G":
            names = ("BC", "AD") if count < 4 else ("Before Christ", "Anno Domini")
            return names[calendar.year > 0]
        case "M" | "L":
            name = _MONTHS[calendar.month - 1]
            return name if count >= 4 else name[:3] if count == 3 else f"{calendar.month:0{count}}"
        case "E":
            name = _DAYS[calendar.weekday]
            return name if count >= 4 else name[:3]
        case "a":
            return "AM" if hour < 12 else "PM"
        case "z":
            return "Coordinated Universal Time" if count >= 4 else "UTC"
        case "Z":
            return "+0000"
        case "X":
            return "Z"
        case "w":
            number = _week(calendar)[1]
        case "W":
            first = (calendar.weekday + 1 - (calendar.day - 1)) % 7
            number = (calendar.day - 1 + first) // 7 + 1
        case "D":
            number = calendar.day_of_year
        case "d":
            number = calendar.day
        case "F":
            number = (calendar.day - 1) // 7 + 1
        case "u":
            number = calendar.weekday + 1
        case "H":
            number = hour
        case "k":
            number = hour or 24
        case "K":
            number = hour % 12
        case "h":
            number = hour % 12 or 12
        case "m":
            number = of_day // 60_000 % 60
        case "s":
            number = of_day // 1_000 % 60
        case _:
            number = of_day % 1_000
    return f"{number:0{count}}"


def _week(calendar: _Calendar) -> tuple[int, int]:
    """The year that a week belongs to, and its number: the week with the first of January is the first."""
    sunday_first = (calendar.weekday + 1) % 7
    length = days_of(calendar.year + 1, 0, 1) - days_of(calendar.year, 0, 1)
    if calendar.day_of_year + 6 - sunday_first > length:
        return calendar.year + 1, 1
    first = (sunday_first - (calendar.day_of_year - 1)) % 7
    return calendar.year, (calendar.day_of_year - 1 + first) // 7 + 1


class _Found:
    """What a text has said so far. Later fields count for more, as in Java's calendar."""

    def __init__(self) -> None:
        self.fields: dict[str, int] = {}
        self.order: list[str] = []

    def set(self, field: str, value: int) -> None:
        self.fields[field] = value
        if field in self.order:
            self.order.remove(field)
        self.order.append(field)

    def _when(self, *fields: str) -> int:
        """When the last of them was set; -1 if one was not."""
        if not all(field in self.fields for field in fields):
            return -1
        return max(self.order.index(field) for field in fields)

    def moment(self) -> int:
        get = self.fields.get
        year = get("year", 1970)
        if get("era") == 0:
            year = 1 - year
        if self._when("day of year") > max(self._when("day"), self._when("month")):
            days = days_of(year, 0, get("day of year", 1))
        else:
            days = days_of(year, get("month", 0), get("day", 1))
        if self._when("hour of day") >= 0 and self._when("hour of day") > self._when("hour", "half"):
            hours = get("hour of day", 0)
        else:
            hours = get("hour", 0) + 12 * get("half", 0)
        ms = (hours * 60 + get("minute", 0)) * 60_000 + get("second", 0) * 1_000 + get("millisecond", 0)
        moment = days * DAY_MS + ms - get("zone", 0)
        if not _LEAST <= moment < -_LEAST:
            raise ValueError("out of range")
        return moment


_FIELDS: Final = {
    "D": "day of year",
    "d": "day",
    "H": "hour of day",
    "K": "hour",
    "m": "minute",
    "s": "second",
    "S": "millisecond",
    "u": "weekday",
}


def _read(piece: _Piece, text: str, start: int, found: _Found, *, touches: bool) -> int:
    """Reads one field, and returns where it ends."""
    letter, count = piece.letter, piece.times
    if letter in _WEEKS:
        raise ValueError(f"the pattern letter {letter} cannot be read")
    at = start
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    if at >= len(text):
        raise ValueError("the text is too short")
    if letter in ("M", "L") and count > 2:
        number, at = _named("M", text, start)
        found.set("month", number)
        return at
    if letter in ("E", "a", "G"):
        number, at = _named(letter, text, start)
        found.set({"E": "weekday", "a": "half", "G": "era"}[letter], number)
        return at
    if letter in ("z", "Z", "X"):
        return _read_zone(letter, count, text, at, found)
    if touches and start + count > len(text):
        raise ValueError("the text is too short")
    digits = _NUMBER.match(text, at, start + count if touches else len(text))
    if digits is None:
        raise ValueError(f"no number at {at}")
    number, end = int(digits[0]), digits.end()
    number = ((number + (1 << 31)) % (1 << 32)) - (1 << 31)
    match letter:
        case "y":
            if count <= 2 and len(digits[0]) == 2 and digits[0].isdigit():
                number += 1900 if number >= 50 else 2000
            found.set("year", number)
        case "M" | "L":
            found.set("month", number - 1)
        case "k":
            found.set("hour of day", 0 if number == 24 else number)
        case "h":
            found.set("hour", 0 if number == 12 else number)
        case _:
            found.set(_FIELDS[letter], number)
    return end


def _named(letter: str, text: str, at: int) -> tuple[int, int]:
    """Number and end of the longest name that stands there, in any case."""
    rest = text[at : at + 30].lower()
    names = [name for name in _NAMES[letter] if rest.startswith(name)]
    if not names:
        raise ValueError(f"no name at {at}")
    name = max(names, key=len)
    return _NAMES[letter][name], at + len(name)


def _read_zone(letter: str, count: int, text: str, at: int, found: _Found) -> int:
    if letter == "X" and text[at] == "Z":
        found.set("zone", 0)
        return at + 1
    colon = letter == "X" and count == 3
    width = count if letter == "X" else 0
    if letter != "X" and text[at] not in "+-":
        is_gmt = text[at : at + 3].lower() == "gmt"
        if not is_gmt or text[at + 3 : at + 4] not in ("+", "-"):
            _, end = (0, at + 3) if is_gmt else _named("z", text, at)
            found.set("zone", 0)
            return end
        at, colon = at + 3, True
    if text[at : at + 1] not in ("+", "-"):
        raise ValueError(f"no zone at {at}")
    # Hours alone (X), hours and minutes (Z, XX), with a colon (XXX), or as in GMT+1:00.
    shape = r"(\d\d)" if width == 1 else r"(\d\d)(\d\d)"
    if colon:
        shape = r"(\d\d):(\d\d)" if width else r"(\d\d?):(\d\d)"
    read = re.compile(shape).match(text, at + 1)
    if read is None:
        raise ValueError(f"no zone at {at}")
    hours, minutes = int(read[1]), int(read[2]) if read.re.groups > 1 else 0
    if hours > 23 or minutes > 59:
        raise ValueError(f"no zone at {at}")
    found.set("zone", (hours * 60 + minutes) * 60_000 * (-1 if text[at] == "-" else 1))
    return read.end()
