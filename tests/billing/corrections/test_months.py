"""What is corrected of a lease keeps its place in tiers and commitments of the month, and it all adds up."""

from datetime import timedelta

import pytest

from billing.services.corrections import proposing
from tests.billing.corrections.corrected import ANNA, WHY, approved
from tests.billing.histories import EURO, HOUR, customer, ran, sold
from tests.billing.months.terms import NOW, START, checked, closed, drafted, tiered
from tests.billing.months.test_commitments import agreed

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", ["graduated", "volume"])
def test_a_correction_takes_no_seconds_out_of_the_tiers(model: str) -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, model, [10 * HOUR], [EURO // 2])
    lease = ran(project, offering, START, 12 * HOUR)
    ran(project, offering, START + timedelta(days=1), 4 * HOUR)
    before = drafted(tenant).total
    span = {"since": START, "until": START + timedelta(hours=2)}
    approved(proposing.of_lease(lease, charge=False, **span, why=WHY, actor=ANNA, now=NOW), now=NOW)  # type: ignore[arg-type]
    draft = drafted(tenant)
    assert draft.total == before - 200  # at the price of an hour, at which they were charged
    checked(draft)
    checked(closed(tenant))


def test_what_is_given_back_of_covered_seconds_adds_up() -> None:
    tenant, project = customer()
    offering = sold(2 * EURO)
    agreed(tenant, offering, 1)
    lease = ran(project, offering, START, 12 * HOUR)
    before = drafted(tenant).total
    span = {"since": START, "until": START + timedelta(hours=2)}
    approved(proposing.of_lease(lease, charge=False, **span, why=WHY, actor=ANNA, now=NOW), now=NOW)  # type: ignore[arg-type]
    draft = drafted(tenant)
    assert before - 400 <= draft.total < before
    checked(draft)
    checked(closed(tenant))
