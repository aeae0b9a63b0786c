"""Laying papers out: always the same bytes, and nothing that anybody typed is read as markup."""

import hashlib
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from billing.services.papers.printing import FOLDER, fonts, printed
from tests.billing.histories import at
from tests.billing.papers.sheets import paper

ISSUED = at("2026-11-01 00:05:00")
ROOT = Path(__file__).parents[3]
ELSEWHERE = """
import django, hashlib, sys
django.setup()
from tests.billing.papers.sheets import paper
from tests.billing.papers.test_printing import ISSUED
from billing.services.papers.printing import printed
print(hashlib.sha256(printed(paper("Zoë Łukasz", lines=40), at=ISSUED)).hexdigest())
"""


def test_another_process_in_another_time_zone_lays_out_the_same_bytes() -> None:
    here = hashlib.sha256(printed(paper("Zoë Łukasz", lines=40), at=ISSUED)).hexdigest()
    seen = set()
    for zone in ("Asia/Kolkata", "America/St_Johns"):
        env = os.environ | {"TZ": zone, "LANG": "C", "SOURCE_DATE_EPOCH": "1"}
        found = subprocess.run(
            [sys.executable, "-c", ELSEWHERE], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        seen.add(found.stdout.strip())
    assert seen == {here}


def test_the_moment_it_was_issued_at_is_in_it_and_no_other() -> None:
    made = printed(paper(), at=ISSUED)
    assert b"D:20261101000500" in made
    assert made != printed(paper(), at=ISSUED + timedelta(days=1))
    assert made == printed(paper(), at=ISSUED + timedelta(microseconds=5))


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
    ids=["code", "markup", "right to left", "emoji", "no font of ours", "one long word", "controls", "empty"],
)
def test_whatever_somebody_is_called_is_set_as_text(name: str) -> None:
    assert printed(paper(name), at=ISSUED).startswith(b"%PDF-")


def test_a_draft_is_another_paper_than_a_final_one() -> None:
    assert printed(paper(draft=True), at=ISSUED) != printed(paper(), at=ISSUED)


def test_only_fonts_of_ours_are_used_and_those_of_the_operators_folder() -> None:
    ours = {"Inter", "JetBrains Mono", "Noto Emoji", "Noto Sans Arabic", "Noto Sans Hebrew"}
    assert set(fonts("").families()) == ours
    assert {each.path for each in fonts("").fonts() if not str(each.path).startswith(str(FOLDER))} == set()
    assert set(fonts(str(FOLDER / "fonts")).families()) == ours
