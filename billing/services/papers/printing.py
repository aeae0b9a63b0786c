"""The door to typst: a paper is laid out on pages, with our own fonts and nothing of this machine.

The same paper and moment give the same bytes, in any process, on any day and in any time zone.
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import typst
from django.conf import settings

from billing.domain.papers import Paper

FOLDER = Path(__file__).resolve().parents[2] / "papers"
TEMPLATE = FOLDER / "paper.typ"


def printed(paper: Paper, *, at: datetime) -> bytes:
    """Return a paper as a PDF that says it was made then. Takes milliseconds, and lets other threads work."""
    return typst.compile(
        TEMPLATE,
        root=FOLDER,
        font_paths=fonts(settings.PAPER_FONTS),
        ignore_system_fonts=True,
        format="pdf",
        sys_inputs={"paper": paper.text()},
        timestamp=at.astimezone(UTC).replace(microsecond=0),
    )


@cache
def fonts(more: str) -> typst.Fonts:
    """Return our fonts, and those of the folder that the operator names for scripts that ours do not write."""
    folders = [FOLDER / "fonts", *([Path(more)] if more else [])]
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=folders)
