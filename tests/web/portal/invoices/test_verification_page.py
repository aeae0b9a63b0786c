"""Verification page: bundle, verifier program and result."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from django.test import Client

from billing.models import Invoice
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from billing.verify import verify
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.web.portal.signed_in_user import PortalSession, run_lease_for
from tests.web.portal.spend.test_spend_and_invoices import charged
from web.http import downloads
from web.portal.invoices import verification_pages

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(portal: PortalSession) -> Invoice:
    run_lease_for(portal, "1g.10gb", 3600)
    run_lease_for(portal, "2g.20gb", 1800, quantity=2)
    return charged(portal)


def test_the_downloaded_bundle_and_program_verify_the_invoice(
    portal: PortalSession, draft: Invoice, tmp_path: Path
) -> None:
    page = portal.read(f"/invoices/{draft.pk}/")
    assert "Verify this invoice" in page
    assert "python verify.py invoice-2026-11-draft.json" in page
    for address in (f"/invoices/{draft.pk}/bundle/", "/invoices/verify.py"):
        answer = portal.get(address)
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


def test_the_verifier_program_is_downloadable_without_signing_in() -> None:
    answer = Client().get("/invoices/verify.py")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/x-python; charset=utf-8")
    assert answer.content == Path(verify.__file__).read_bytes()


def test_the_page_shows_the_recomputed_totals_and_that_they_match(portal: PortalSession, draft: Invoice) -> None:
    page = portal.read(f"/invoices/{draft.pk}/verification/")
    assert "Match: every amount is correct." in page
    assert "Total €3.00 matches the invoice Lines 2" in page
    assert "Slice-seconds 7,200 s" in page
    assert "Differences" not in page


def test_the_page_names_every_difference(portal: PortalSession, draft: Invoice) -> None:
    with tenant_scope(draft.tenant_id):
        raw = b"".join(invoice_bundles.build_bundle(draft))
    bent = raw.replace(b'"total":300', b'"total":299')
    assert bent != raw
    with patch.object(invoice_bundles.InvoiceBundle, "whole", return_value=bent):
        page = portal.read(f"/invoices/{draft.pk}/verification/")
    assert "2 differences." in page
    assert "the total: the invoice says 2.99 EUR, recomputed is 3.00 EUR" in page
    assert "Match:" not in page


def test_the_page_lists_checks_that_could_not_be_made(portal: PortalSession, draft: Invoice) -> None:
    with patch.object(verify, "ZoneInfo", side_effect=verify.ZoneInfoNotFoundError):
        page = portal.read(f"/invoices/{draft.pk}/verification/")
    assert "Not checked" in page
    assert "this computer does not know the time zone" in page


def test_a_large_invoice_is_not_verified_on_the_page(portal: PortalSession, draft: Invoice) -> None:
    with patch.object(verification_pages, "MAX_CHECKED_BYTES", 100):
        assert "too large to verify on this page" in portal.read(f"/invoices/{draft.pk}/verification/")


def test_a_large_bundle_is_streamed_with_the_same_content(portal: PortalSession, draft: Invoice) -> None:
    path = f"/invoices/{draft.pk}/bundle/"
    whole = portal.get(path)
    with patch.object(downloads, "MAX_UNSTREAMED", 100):
        answer = portal.get(path)
        assert answer.streaming
        assert b"".join(answer.streaming_content) == whole.content

    assert answer["Content-Disposition"] == whole["Content-Disposition"]


def test_an_outdated_draft_returns_409_until_it_is_refreshed(portal: PortalSession, draft: Invoice) -> None:
    run_lease_for(portal, "1g.10gb", 3600)
    lease_rating.rate_all_leases(now=portal.sim.now)
    for address in ("bundle", "verification"):
        page = portal.read(f"/invoices/{draft.pk}/{address}/", status=409)
        assert "Try again in a minute" in page
    with tenant_scope(draft.tenant_id):
        drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
    assert "Total €4.00" in portal.read(f"/invoices/{draft.pk}/verification/")


def test_only_tenant_wide_billing_members_can_verify_an_invoice(portal: PortalSession, draft: Invoice) -> None:
    child = portal.owner.create_project("below")
    for role, project, status in (
        (Role.BILLING, None, 200),
        (Role.VIEWER, None, 403),
        (Role.OWNER, child, 403),
    ):
        other = portal.sign_in_as(role, project)
        for address in ("bundle", "verification"):
            assert other.get(f"/invoices/{draft.pk}/{address}/").status_code == status, (role, address)
