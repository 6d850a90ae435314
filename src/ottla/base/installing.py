"""How to install what is missing, as it can be done today: from the index, or from the directory that ottla is from."""

from typing import Any


def install_command(extra: str) -> str:
    """`pip install 'ottla[security]'`, or with the path of the checkout that was installed."""
    return f"pip install '{_source() or 'ottla'}[{extra}]'"


def _source() -> str | None:
    """The directory that pip has installed this from (PEP 610); None if it is from an index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("ottla").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    document: dict[str, Any] = json.loads(text or "{}")
    url = str(document.get("url", ""))
    if "dir_info" not in document or not url.startswith("file://"):
        return None
    from urllib.parse import unquote

    return unquote(url.removeprefix("file://"))
