"""An invoice can be checked: its bundle and the program are handed out, and the page shows what that program says."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from django.test import Client

from billing.models import Invoice
from billing.portal import checking, downloads
from billing.services import bundles, drafts, rating
from billing.verify import verify
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk
from tests.billing.portal.test_money import charged, ran

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(desk: Desk) -> Invoice:
    ran(desk, "1g.10gb", 3600)
    ran(desk, "2g.20gb", 1800, quantity=2)
    return charged(desk)


def test_what_the_invoice_page_hands_out_checks_the_invoice(
    desk: Desk, draft: Invoice, tmp_path: Path
) -> None:
    page = desk.read(f"/invoices/{draft.pk}/")
    assert "Check it yourself" in page
    assert "python verify.py invoice-2026-11-draft.json" in page
    for address in (f"/invoices/{draft.pk}/bundle/", "/invoices/verify.py"):
        answer = desk.get(address)
        name = answer["Content-Disposition"].partition('filename="')[2].rstrip('"')
        (tmp_path / name).write_bytes(answer.content)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "verify.py", "invoice-2026-11-draft.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3.00 EUR recomputed, 3.00 EUR on the invoice" in done.stdout


def test_the_program_is_handed_out_as_it_is_to_anybody() -> None:
    answer = Client().get("/invoices/verify.py")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/x-python; charset=utf-8")
    assert answer.content == Path(verify.__file__).read_bytes()


def test_the_page_shows_what_the_program_recomputed(desk: Desk, draft: Invoice) -> None:
    page = desk.read(f"/invoices/{draft.pk}/check/")
    assert "Equal: every figure follows from what happened." in page
    assert "Total €3.00 as on the invoice Lines 2" in page
    assert "Seconds 7,200 s" in page
    assert "What differs" not in page


def test_the_page_names_every_difference(desk: Desk, draft: Invoice) -> None:
    with as_tenant(draft.tenant_id):
        raw = b"".join(bundles.bundle(draft))
    bent = raw.replace(b'"total":300', b'"total":299')
    assert bent != raw
    with patch.object(bundles.Bundle, "whole", return_value=bent):
        page = desk.read(f"/invoices/{draft.pk}/check/")
    assert "2 differences." in page
    assert "the total: the invoice says 2.99 EUR, recomputed is 3.00 EUR" in page
    assert "Equal:" not in page


def test_the_page_says_what_it_could_not_check(desk: Desk, draft: Invoice) -> None:
    with patch.object(verify, "ZoneInfo", side_effect=verify.ZoneInfoNotFoundError):
        page = desk.read(f"/invoices/{draft.pk}/check/")
    assert "Not checked" in page
    assert "this computer does not know 2026-11 in the time zone" in page


def test_a_large_invoice_is_checked_by_whoever_downloads_it(desk: Desk, draft: Invoice) -> None:
    with patch.object(checking, "WHILE_ONE_WAITS", 100):
        assert "too large to be checked while you wait" in desk.read(f"/invoices/{draft.pk}/check/")


def test_a_large_bundle_comes_piece_by_piece_and_is_the_same(desk: Desk, draft: Invoice) -> None:
    path = f"/invoices/{draft.pk}/bundle/"
    whole = desk.get(path)
    with patch.object(downloads, "AT_ONCE", 100):
        answer = desk.get(path)
        assert answer.streaming
        assert b"".join(answer.streaming_content) == whole.content

    assert answer["Content-Disposition"] == whole["Content-Disposition"]


def test_a_draft_that_is_behind_its_charges_says_when_to_come_back(desk: Desk, draft: Invoice) -> None:
    ran(desk, "1g.10gb", 3600)
    rating.rate(now=desk.life.now)
    for address in ("bundle", "check"):
        page = desk.read(f"/invoices/{draft.pk}/{address}/", status=409)
        assert "Ask again in a minute" in page
    with as_tenant(draft.tenant_id):
        drafts.refresh(desk.owner.tenant, now=desk.life.now)
    assert "Total €4.00" in desk.read(f"/invoices/{draft.pk}/check/")


def test_nobody_checks_what_is_not_theirs(desk: Desk, draft: Invoice) -> None:
    child = desk.owner.child("below")
    for role, project, status in (
        (Role.BILLING, None, 200),
        (Role.VIEWER, None, 403),
        (Role.OWNER, child, 403),
    ):
        other = desk.signed_in_as(role, project)
        for address in ("bundle", "check"):
            assert other.get(f"/invoices/{draft.pk}/{address}/").status_code == status, (role, address)
