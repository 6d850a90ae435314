"""The subject of a certificate as text, and its alternative names: what principals and rules about changes go by.

The text is the one that Java writes (`X500Principal.getName()`), since ACLs and `super.users` have it: in RFC 2253's
order, the last part first; nine attributes by name, and the others by number with their value in hexadecimal.
"""

from collections.abc import Iterator
from typing import Final

from ottla.security.tls.der import Element, elements, first_element, object_id

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXTS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""The tags of what Java takes for text, UTF8String to BMPString. It reads all of them as UTF-8, and so do we."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SUBJECT_ALTERNATIVE_NAME: Final = "2.5.29.17"
_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_UTC_TIME: Final = 0x17
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_VALIDITY_PLACE: Final = 3
_SUBJECT_PLACE: Final = 4
"""In a certificate, after serial number, algorithm, issuer and validity."""


def subject_of(certificate: bytes) -> str:
    """The subject's name, of a certificate in DER. Raises `ValueError`."""
    return name_text(_fields(certificate)[_SUBJECT_PLACE])


def valid_until(certificate: bytes) -> str:
    """When a certificate in DER expires, as OpenSSL writes it (`Jan  5 09:34:43 2018 GMT`). Raises `ValueError`."""
    _, until = _fields(certificate)[_VALIDITY_PLACE].children()
    text = until.content.decode("ascii")
    if until.tag == _UTC_TIME:
        text = f"{'19' if text >= '50' else '20'}{text}"
    month = _MONTHS[int(text[4:6]) - 1]
    return f"{month} {int(text[6:8]):2} {text[8:10]}:{text[10:12]}:{text[12:14]} {text[:4]} GMT"


def alternative_names_of(certificate: bytes) -> frozenset[bytes]:
    """The subject's alternative names, each encoded. Raises `ValueError`."""
    for extensions in _fields(certificate):
        if extensions.tag == _EXTENSIONS_TAG:
            for extension in first_element(extensions.content).children():
                name, *_, value = extension.children()
                if object_id(name.content) == _SUBJECT_ALTERNATIVE_NAME:
                    return frozenset(one.encoded for one in elements(first_element(value.content).content))
    return frozenset()


def _fields(certificate: bytes) -> list[Element]:
    signed = first_element(first_element(certificate).content)
    fields = [field for field in signed.children() if field.tag != _VERSION_TAG]
    if len(fields) <= _SUBJECT_PLACE:
        raise ValueError("a certificate without a subject")
    return fields


def name_text(name: Element) -> str:
    parts = ["+".join(_attributes(part)) for part in name.children()]
    return ",".join(reversed(parts))


def _attributes(part: Element) -> Iterator[str]:
    for attribute in part.children():
        kind, value = attribute.children()
        number = object_id(kind.content)
        keyword = _KEYWORDS.get(number)
        if keyword is None or value.tag not in _TEXTS:
            yield f"{keyword or number}=#{value.encoded.hex()}"
        else:
            yield f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    bare = text.strip(" \r")
    start = text.index(bare) if bare else len(text)
    edges = {*range(start), *range(start + len(bare), len(text))}
    written = []
    for place, character in enumerate(text):
        if character == "\0":
            written.append("\\00")
        else:
            written.append("\\" + character if character in _ESCAPED or place in edges else character)
    return "".join(written)
