"""Options in the query of a URL that is a setting."""

from urllib.parse import parse_qsl


def parse_url_options(query: str) -> dict[str, str]:
    """Return the options; ValueError for a repeated or empty one."""
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in options:
            raise ValueError(f"Option {name} is given twice.")
        if not value:
            raise ValueError(f"Option {name} has no value.")
        options[name] = value
    return options
