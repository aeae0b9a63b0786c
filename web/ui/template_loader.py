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
LINE_BREAK = re.compile(rf"(</(?:{BLOCKS})>)?\s*\n\s*(/?>|(?=</?(?:{BLOCKS})\b))?")


class Loader(CottonLoader):  # type: ignore[misc]
    """Load cotton templates; pages as one line."""

    def get_contents(self, origin: Origin) -> str:
        """Return the compiled source of a template."""
        source: str = super().get_contents(origin)
        return join_lines(source) if origin.name.endswith(".html") else source


def join_lines(source: str) -> str:
    """Remove line breaks, except in preformatted text, scripts and styles."""
    parts = KEPT.split(COMMENT.sub("", source))
    return "".join(part if number % 2 else LINE_BREAK.sub(_joint, part) for number, part in enumerate(parts))


def _joint(found: re.Match[str]) -> str:
    """Replace a line break by a space, or nothing beside a block or tag end."""
    before, after = found.groups()
    return " " if before is None and after is None else f"{before or ''}{after or ''}"
