"""Corrections of months with tiers or commitments."""

from datetime import timedelta

import pytest

from billing.services.invoicing.corrections import correction_proposals
from tests.billing.agreements.agreed_terms import (
    NOW,
    START,
    close_and_get_invoice,
    create_draft,
    set_tiered_price,
    verify_invoice,
)
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.corrections.correction_setup import ANNA, WHY, approve_correction
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", ["graduated", "volume"])
def test_a_correction_keeps_its_seconds_counted_in_the_tiers(model: str) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, model, [10 * HOUR], [EURO // 2])
    lease = add_ended_lease(project, offering, START, 12 * HOUR)
    add_ended_lease(project, offering, START + timedelta(days=1), 4 * HOUR)
    before = create_draft(tenant).total
    span = {"since": START, "until": START + timedelta(hours=2)}
    approve_correction(
        correction_proposals.propose_lease_correction(lease, charge=False, **span, why=WHY, actor=ANNA, now=NOW),
        now=NOW,
    )  # type: ignore[arg-type]
    draft = create_draft(tenant)
    assert draft.total == before - 200  # at the price of an hour, at which they were charged
    verify_invoice(draft)
    verify_invoice(close_and_get_invoice(tenant))


def test_a_credited_part_of_committed_usage_keeps_totals_verifiable() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    create_commitment_terms(tenant, offering, 1)
    lease = add_ended_lease(project, offering, START, 12 * HOUR)
    before = create_draft(tenant).total
    span = {"since": START, "until": START + timedelta(hours=2)}
    approve_correction(
        correction_proposals.propose_lease_correction(lease, charge=False, **span, why=WHY, actor=ANNA, now=NOW),
        now=NOW,
    )  # type: ignore[arg-type]
    draft = create_draft(tenant)
    assert before - 400 <= draft.total < before
    verify_invoice(draft)
    verify_invoice(close_and_get_invoice(tenant))
