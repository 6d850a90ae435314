"""Whether somebody is let in."""

from collections.abc import Mapping

from ottla import Admin
from ottla.errors import SaslAuthenticationFailed


def logs_in(settings: Mapping[str, object]) -> bool:
    with Admin(settings) as admin:
        try:
            admin.list_topics(timeout=30)
        except SaslAuthenticationFailed:
            return False
    return True
