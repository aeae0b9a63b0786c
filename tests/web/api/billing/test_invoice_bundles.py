"""The invoice bundle over the API and its schema."""

import json
from typing import Any
from unittest.mock import patch

import pytest

from billing.models import Invoice
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from billing.verify.verify import check
from ports import clock
from tenants.domain.roles import Role
from tests.billing.histories import HOUR, add_ended_lease, create_priced_offering, invoices_of, utc
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient
from web.http import downloads

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")


def get_bundle(owner: TenantContext, path: str, role: Role = Role.OWNER) -> Any:
    with clock.frozen_at(NOW):
        return ApiClient(owner.token(role, now=NOW)).send("GET", path)


@pytest.fixture
def draft(kestrel: TenantContext) -> Invoice:
    add_ended_lease(
        kestrel.project, create_priced_offering(1_340_000_000), utc("2026-11-19 08:00:00"), HOUR, quantity=2
    )
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(kestrel.tenant, now=NOW)
    return invoices_of(kestrel.tenant)[0]


def test_the_bundle_is_an_attachment_that_the_verifier_accepts(kestrel: TenantContext, draft: Invoice) -> None:
    answer = get_bundle(kestrel, f"invoices/{draft.pk}/bundle")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer["Content-Disposition"] == 'attachment; filename="invoice-2026-11-draft.json"'
    report = check(answer.content)
    assert (report.equal, report.total) == (True, 268)


def test_a_large_bundle_is_streamed(kestrel: TenantContext, draft: Invoice) -> None:
    whole = get_bundle(kestrel, f"invoices/{draft.pk}/bundle").content
    with patch.object(downloads, "MAX_UNSTREAMED", 10):
        answer = get_bundle(kestrel, f"invoices/{draft.pk}/bundle")
        assert answer.streaming
        assert b"".join(answer.streaming_content) == whole


def test_the_bundle_matches_its_openapi_schema(kestrel: TenantContext, draft: Invoice) -> None:
    schema = get_bundle(kestrel, "openapi.json").json()
    promised = schema["paths"]["/api/v1/invoices/{id}/bundle"]["get"]["responses"]["200"]["content"]
    assert promised == {"application/json": {"schema": {"$ref": "#/components/schemas/BundleOut"}}}
    said = json.loads(get_bundle(kestrel, f"invoices/{draft.pk}/bundle").content)
    said["leases"][0]["late"] = [{"seq": 2, "month": "2026-10"}]
    for name, thing in (
        ("BundleOut", said),
        ("BundleInvoiceOut", said["invoice"]),
        ("BundleMonthOut", said["months"][0]),
        ("BundlePriceOut", said["prices"][0]),
        ("BundleLineOut", said["lines"][0]),
        ("BundleLeaseOut", said["leases"][0]),
        ("BundleLateOut", said["leases"][0]["late"][0]),
        ("BundleTransitionOut", said["leases"][0]["steps"][0]),
    ):
        assert set(schema["components"]["schemas"][name]["required"]) == set(thing), name


def test_a_draft_that_is_behind_its_charges_is_a_problem_with_a_fix(kestrel: TenantContext, draft: Invoice) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(1), utc("2026-11-19 08:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    answer = get_bundle(kestrel, f"invoices/{draft.pk}/bundle")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("draft-updating")


def test_only_billing_members_and_admins_get_the_bundle(kestrel: TenantContext, draft: Invoice) -> None:
    for role, status in ((Role.MEMBER, 403), (Role.VIEWER, 403), (Role.BILLING, 200), (Role.ADMIN, 200)):
        assert get_bundle(kestrel, f"invoices/{draft.pk}/bundle", role).status_code == status
    assert get_bundle(create_tenant("Tern"), f"invoices/{draft.pk}/bundle").status_code == 404
