"""Template loader that leaves out the line breaks and the indentation of the files.

Sent as they are written, tables of 50 rows would weigh half as much again.
"""

import re

from django.template import Origin
from django_cotton.cotton_loader import Loader as CottonLoader

# Browsers show no whitespace beside these, and one space for a line break anywhere else.
BLOCKS = "h[1-6]|p|div|section|header|footer|form|table|thead|tbody|tfoot|tr|th|td|ul|ol|li|dl|dt|dd|option"
KEPT = re.compile(r"(<(?:pre|textarea|script|style)\b.*?</(?:pre|textarea|script|style)>)", re.DOTALL)
COMMENT = re.compile(r"\{% comment %\}.*?\{% endcomment %\}", re.DOTALL)
LINE_BREAK = re.compile(rf"(</?(?:{BLOCKS})\b[^<>]*>|<button\b[^<>]*>)?\s*\n\s*(/?>|(?=</?(?:{BLOCKS})\b|</button>))?")
# The space outside a condition is always sent, so the one inside is not needed.
CONDITION = re.compile(r"(?<=\s)(\{% if [^%]*%\})\s+|\s+(\{% endif %\})(?=\s)")


class Loader(CottonLoader):  # type: ignore[misc]
    """Load cotton templates; pages as one line."""

    def get_contents(self, origin: Origin) -> str:
        """Return the compiled source of a template."""
        source: str = super().get_contents(origin)
        return join_lines(source) if origin.name.endswith(".html") else source


def join_lines(source: str) -> str:
    """Remove line breaks and double spaces, except in preformatted text, scripts and styles."""
    parts = KEPT.split(COMMENT.sub("", source))
    return "".join(part if number % 2 else _join(part) for number, part in enumerate(parts))


def _join(part: str) -> str:
    return CONDITION.sub(r"\1\2", LINE_BREAK.sub(_joint, part))


def _joint(found: re.Match[str]) -> str:
    """Replace a line break by a space, or nothing beside a block or tag end."""
    before, after = found.groups()
    if before is None and after is None:
        return " "
    return f"{LINE_BREAK.sub(_joint, before or '')}{after or ''}"
