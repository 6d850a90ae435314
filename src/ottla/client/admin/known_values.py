"""Members of enumerations as brokers tell them. A broker may be newer than this client and know more of them."""

from enum import Enum, IntEnum
from typing import TypeVar

EnumT = TypeVar("EnumT", bound=Enum)
IntEnumT = TypeVar("IntEnumT", bound=IntEnum)


def named(names: type[EnumT], text: str, otherwise: EnumT) -> EnumT:
    """The member of that name, whatever its case."""
    return next((one for one in names if str(one.value).lower() == text.lower()), otherwise)


def numbered(numbers: type[IntEnumT], number: int, otherwise: IntEnumT) -> IntEnumT:
    try:
        return numbers(number)
    except ValueError:
        return otherwise
