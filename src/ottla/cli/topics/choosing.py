"""Topics by name, by a regular expression, or by several with commas between, as Kafka's tools take them."""

from collections.abc import Callable, Iterable

from ottla.cli.failures import Terse


def topic_pattern(text: str) -> Callable[[str], bool]:
    """Tells whether a topic's whole name matches. A comma stands for "or"; quotes around the pattern are taken off.

    The expression is Python's, where Kafka's tools take Java's: they differ in what topic names hardly need.
    """
    import re  # not at every tool's start

    expression = text.strip().replace(",", "|").replace(" ", "")
    expression = expression.strip("\"'")
    try:
        matches = re.compile(expression).fullmatch
    except re.error as problem:
        raise Terse(f"{expression} is an invalid regex: {problem}") from None
    return lambda name: matches(name) is not None


def chosen(names: Iterable[str], text: str | None) -> list[str]:
    if text is None:
        return sorted(names)
    matches = topic_pattern(text)
    return sorted(name for name in names if matches(name))
