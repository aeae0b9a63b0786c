"""PDF rendering with typst, using only bundled fonts.

The same document and time give the same bytes in any process, on any day and in any time zone.
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal

import typst
from django.conf import settings

from billing.domain.documents import Document

FOLDER = Path(__file__).resolve().parents[2] / "document_templates"
ARCHIVAL_STANDARD: Literal["a-3b"] = "a-3b"
TEMPLATE = FOLDER / "document.typ"


def render_pdf(document: Document, *, at: datetime, archival: bool = False) -> bytes:
    """Return a document as a PDF dated at a time.

    `archival` makes it PDF/A-3, which may embed files. It takes milliseconds and releases the GIL.
    """
    return typst.compile(
        TEMPLATE,
        root=FOLDER,
        font_paths=load_fonts(settings.INVOICE_FONT_DIR),
        ignore_system_fonts=True,
        format="pdf",
        sys_inputs={"document": document.text()},
        pdf_standards=[ARCHIVAL_STANDARD] if archival else [],
        timestamp=at.astimezone(UTC).replace(microsecond=0),
    )


@cache
def load_fonts(more: str) -> typst.Fonts:
    """Return the bundled fonts and those of a folder that the operator configures.

    The folder is for scripts that the bundled fonts do not cover.
    """
    folders = [FOLDER / "fonts", *([Path(more)] if more else [])]
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=folders)
