"""The system's resolver."""

import socket


class SystemHostNames:
    __slots__ = ()

    def addresses_of(self, name: str) -> list[str]:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except UnicodeError as problem:
            raise OSError(f"{name!r} is no host's name: {problem}") from problem
        return [str(address[0]) for *_, address in found]

    def own_name(self) -> str:
        return socket.getfqdn()
