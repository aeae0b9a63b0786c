"""Reproducible PDF rendering without markup injection."""

import hashlib
import io
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pypdf
import pytest

from billing.services.documents.pdf_rendering import FOLDER, load_fonts, render_pdf
from tests.billing.documents.sample_documents import sample_invoice
from tests.billing.histories import utc

ISSUED = utc("2026-11-01 00:05:00")
ROOT = Path(__file__).parents[3]
ELSEWHERE = """
import django, hashlib, sys
django.setup()
from tests.billing.documents.sample_documents import sample_invoice
from tests.billing.documents.test_pdf_rendering import ISSUED
from billing.services.documents.pdf_rendering import render_pdf
print(hashlib.sha256(render_pdf(sample_invoice("Zoë Łukasz", lines=40), at=ISSUED)).hexdigest())
"""


@pytest.mark.deep
def test_a_pdf_has_the_same_bytes_in_other_processes_and_time_zones() -> None:
    here = hashlib.sha256(render_pdf(sample_invoice("Zoë Łukasz", lines=40), at=ISSUED)).hexdigest()
    seen = set()
    for zone in ("Asia/Kolkata", "America/St_Johns"):
        env = os.environ | {"TZ": zone, "LANG": "C", "SOURCE_DATE_EPOCH": "1"}
        found = subprocess.run(
            [sys.executable, "-c", ELSEWHERE], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        seen.add(found.stdout.strip())
    assert seen == {here}


def test_a_pdf_contains_its_issue_time_and_no_other() -> None:
    made = render_pdf(sample_invoice(), at=ISSUED)
    assert b"D:20261101000500" in made
    assert made != render_pdf(sample_invoice(), at=ISSUED + timedelta(days=1))
    assert made == render_pdf(sample_invoice(), at=ISSUED + timedelta(microseconds=5))


@pytest.mark.parametrize(
    "name",
    [
        '#panic("read as code")',
        "*bold* _emph_ $x^2$ `raw` = head <label> @ref #let x = 1 \\ // ]] /* [",
        "שלום עולם, مرحبا بالعالم",
        "🚀 rockets 🇪🇺 👩‍🚀",
        "株式会社ケストレル",
        "w" * 500,
        "\u202eoverride\u202c \u0001 \ufeff",
        "",
    ],
    ids=[
        "code",
        "markup",
        "right to left",
        "emoji",
        "unsupported script",
        "one long word",
        "control characters",
        "empty",
    ],
)
def test_names_are_typeset_as_text_and_never_as_markup(name: str) -> None:
    assert render_pdf(sample_invoice(name), at=ISSUED).startswith(b"%PDF-")


def test_a_draft_pdf_differs_from_a_final_pdf() -> None:
    assert render_pdf(sample_invoice(draft=True), at=ISSUED) != render_pdf(sample_invoice(), at=ISSUED)


def test_only_bundled_and_operator_fonts_are_loaded() -> None:
    ours = {"Inter", "JetBrains Mono", "Noto Emoji", "Noto Sans Arabic", "Noto Sans Hebrew"}
    assert set(load_fonts("").families()) == ours
    assert {each.path for each in load_fonts("").fonts() if not str(each.path).startswith(str(FOLDER))} == set()
    assert set(load_fonts(str(FOLDER / "fonts")).families()) == ours


def copied_text(pdf: bytes) -> str:
    """Return what a reader copies from all pages."""
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages)


def test_copied_text_has_no_invisible_characters_and_long_ids_stay_whole() -> None:
    long = "inv_01m8e7daed4drm28gdd53a9nys-and-a-name-that-is-longer-than-a-line"
    text = copied_text(render_pdf(sample_invoice(long), at=ISSUED))
    assert [hex(ord(each)) for each in "\u00ad\u200b\u200c\u200d\u2060\ufeff" if each in text] == []
    assert long in text.replace("\n", "")
