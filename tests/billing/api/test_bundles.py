"""The bundle of an invoice over the API: what a program gets, and what the schema promises of it."""

import json
from typing import Any
from unittest.mock import patch

import pytest

from billing.api import bundles
from billing.models import Invoice
from billing.services import drafts, rating
from billing.verify.verify import check
from ports import clock
from tenants.domain.roles import Role
from tests.billing.histories import HOUR, at, invoices, ran, sold
from tests.tenants.people import Api
from tests.world import Home, home

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")


def asked(owner: Home, path: str, role: Role = Role.OWNER) -> Any:
    with clock.standing_at(NOW):
        return Api(owner.token(role, now=NOW)).ask("GET", path)


@pytest.fixture
def draft(kestrel: Home) -> Invoice:
    ran(kestrel.project, sold(1_340_000_000), at("2026-11-19 08:00:00"), HOUR, quantity=2)
    rating.rate(now=NOW)
    drafts.refresh(kestrel.tenant, now=NOW)
    return invoices(kestrel.tenant)[0]


def test_a_program_gets_the_bundle_as_a_file_and_can_check_it(kestrel: Home, draft: Invoice) -> None:
    answer = asked(kestrel, f"invoices/{draft.pk}/bundle")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer["Content-Disposition"] == 'attachment; filename="invoice-2026-11-draft.json"'
    report = check(answer.content)
    assert (report.equal, report.total) == (True, 268)


def test_a_large_one_comes_piece_by_piece(kestrel: Home, draft: Invoice) -> None:
    whole = asked(kestrel, f"invoices/{draft.pk}/bundle").content
    with patch.object(bundles, "AT_ONCE", 10):
        answer = asked(kestrel, f"invoices/{draft.pk}/bundle")
        assert answer.streaming
        assert b"".join(answer.streaming_content) == whole


def test_it_is_as_the_schema_says(kestrel: Home, draft: Invoice) -> None:
    schema = asked(kestrel, "openapi.json").json()
    promised = schema["paths"]["/api/v1/invoices/{id}/bundle"]["get"]["responses"]["200"]["content"]
    assert promised == {"application/json": {"schema": {"$ref": "#/components/schemas/BundleOut"}}}
    said = json.loads(asked(kestrel, f"invoices/{draft.pk}/bundle").content)
    said["leases"][0]["late"] = [{"seq": 2, "month": "2026-10"}]
    for name, thing in (
        ("BundleOut", said),
        ("HeadOut", said["invoice"]),
        ("BundleMonthOut", said["months"][0]),
        ("PricedOut", said["prices"][0]),
        ("FactsOfLineOut", said["lines"][0]),
        ("LifeOut", said["leases"][0]),
        ("LateOut", said["leases"][0]["late"][0]),
        ("StepOut", said["leases"][0]["steps"][0]),
    ):
        assert set(schema["components"]["schemas"][name]["required"]) == set(thing), name


def test_a_draft_that_is_behind_its_charges_is_a_problem_with_a_fix(kestrel: Home, draft: Invoice) -> None:
    ran(kestrel.project, sold(1), at("2026-11-19 08:00:00"), HOUR)
    rating.rate(now=NOW)
    answer = asked(kestrel, f"invoices/{draft.pk}/bundle")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("draft-moves")


def test_it_is_for_those_who_see_all_of_the_money(kestrel: Home, draft: Invoice) -> None:
    for role, status in ((Role.MEMBER, 403), (Role.VIEWER, 403), (Role.BILLING, 200), (Role.ADMIN, 200)):
        assert asked(kestrel, f"invoices/{draft.pk}/bundle", role).status_code == status
    assert asked(home("Tern"), f"invoices/{draft.pk}/bundle").status_code == 404
