"""Rules that a registry keeps with a schema: conditions and transformations, run where values are written and read.

CEL runs, by the package cel-python (`ottla[rules]`): a rule of type CEL sees the whole value as `message`; one of
type CEL_FIELD each field that has one of its tags, as `value`, with `name`, `fullName`, `typeName` and `tags`, and
may have a guard before a semicolon. A rule that cannot run (another type, an expression that is none, a package that
is missing) is an error that names it: a value that a rule should have stopped or changed must not pass for want of
it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ottla.base.errors import OttlaError
from ottla.schemas.registry_port import RegisteredSchema

Mode = Literal["WRITE", "READ"]


class RuleFailed(OttlaError, ValueError):
    """A value does not fulfil a rule of its schema, or the rule cannot run. `action` is what the rule wants done
    then."""

    def __init__(self, reason: str, rule: str, subject: str, action: str = "ERROR") -> None:
        super().__init__(f"rule {rule} of {subject}: {reason}")
        self.reason = reason
        self.rule = rule
        self.subject = subject
        self.action = action


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as the registry has it."""

    name: str
    kind: str
    mode: str
    type: str
    tags: frozenset[str]
    expr: str
    on_failure: str
    disabled: bool

    def runs_in(self, mode: Mode) -> bool:
        return not self.disabled and self.mode in (mode, "WRITEREAD")


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """A field of a value, where a rule may look at it and change it."""

    name: str
    full_name: str
    type_name: str
    tags: frozenset[str]
    get: Callable[[], Any]
    set: Callable[[Any], None]


Fields = Callable[[Any], Iterator[FieldPlace]]


class RuleSet:
    """The rules of one schema. Most schemas have none, and then nothing is done."""

    def __init__(self, rules: tuple[Rule, ...], subject: str) -> None:
        self._rules = rules
        self._subject = subject
        self.on_write = tuple(rule for rule in rules if rule.runs_in("WRITE"))
        self.on_read = tuple(rule for rule in reversed(rules) if rule.runs_in("READ"))

    @staticmethod
    def of(registered: RegisteredSchema, subject: str) -> "RuleSet":
        given = (registered.rules or {}).get("domainRules") or ()
        return RuleSet(tuple(_rule(one) for one in given), registered.subject or subject)

    def run(self, mode: Mode, value: Any, fields: Fields) -> Any:
        """The value after all rules of the mode. Raises `RuleFailed`."""
        for rule in self.on_write if mode == "WRITE" else self.on_read:
            value = self._one(rule, mode, value, fields)
        return value

    def _one(self, rule: Rule, mode: Mode, value: Any, fields: Fields) -> Any:
        try:
            if rule.type == "CEL":
                result = _evaluated(rule.expr, {"message": value})
                if rule.kind == "TRANSFORM":
                    return result
                if result is False:
                    raise RuleFailed(f"the condition {rule.expr} is false", rule.name, self._subject)
                return value
            if rule.type == "CEL_FIELD":
                self._each_field(rule, value, fields)
                return value
            raise RuleFailed(f"rules of type {rule.type} cannot run here", rule.name, self._subject)
        except RuleFailed as failed:
            action = _action(rule.on_failure, mode)
            if action == "NONE":
                return value
            failed.action = action
            raise
        except Exception as error:
            raise RuleFailed(
                f"it cannot run: {error}", rule.name, self._subject, _action(rule.on_failure, mode)
            ) from error

    def _each_field(self, rule: Rule, value: Any, fields: Fields) -> None:
        guard, _, expr = rule.expr.rpartition(";")
        for place in list(fields(value)):
            if rule.tags and not rule.tags & place.tags:
                continue
            content = place.get()
            variables = {
                "value": content,
                "name": place.name,
                "fullName": place.full_name,
                "typeName": place.type_name,
                "tags": sorted(place.tags),
                "message": value,
            }
            if guard.strip() and _evaluated(guard, variables) is not True:
                continue
            result = _evaluated(expr, variables)
            if rule.kind == "TRANSFORM":
                place.set(result)
            elif result is False:
                raise RuleFailed(
                    f"the condition {expr.strip()} is false for {place.full_name}", rule.name, self._subject
                )


def _rule(given: Mapping[str, Any]) -> Rule:
    return Rule(
        name=str(given.get("name", "")),
        kind=str(given.get("kind", "CONDITION")),
        mode=str(given.get("mode", "WRITEREAD")),
        type=str(given.get("type", "")),
        tags=frozenset(given.get("tags") or ()),
        expr=str(given.get("expr") or ""),
        on_failure=str(given.get("onFailure") or ""),
        disabled=bool(given.get("disabled", False)),
    )


def _action(said: str, mode: Mode) -> str:
    """`ERROR,NONE` is for writing and for reading."""
    parts = [part.strip() for part in said.split(",")]
    chosen = parts[0] if mode == "WRITE" or len(parts) == 1 else parts[1]
    return chosen or "ERROR"


@cache
def _program(expr: str) -> Any:
    try:
        import celpy
    except ModuleNotFoundError:
        raise ModuleNotFoundError("CEL needs the package cel-python: pip install 'ottla[rules]'") from None
    environment = celpy.Environment()
    return environment.program(environment.compile(expr))


def _evaluated(expr: str, variables: Mapping[str, Any]) -> Any:
    import celpy

    program = _program(expr.strip())
    given = {name: celpy.json_to_cel(_cel_value(value)) for name, value in variables.items()}
    return _python_value(program.evaluate(given))


def _cel_value(value: Any) -> Any:
    from ottla.schemas.serializing.objects import plain

    if isinstance(value, bytes):
        return value.decode("latin-1")
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value, preserving_proto_field_name=True)
    made = plain(value)
    return made if isinstance(made, str | int | float | bool | dict | list) or made is None else str(made)


def _python_value(value: Any) -> Any:
    """celpy's own types, which are subclasses, as plain ones."""
    name = type(value).__name__
    if name == "BoolType":
        return bool(value)
    if name == "MapType":
        return {_python_value(key): _python_value(one) for key, one in value.items()}
    if name == "ListType":
        return [_python_value(one) for one in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str(value)
    return bytes(value) if isinstance(value, bytes) else value
