"""Risk of spot leases: how many of a pool were preempted lately."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from broker.domain.lifecycle.spot_terms import RISK_WINDOW, ReclaimRisk, SpotTerms
from broker.models import Offering
from broker.services.inventory.spot_offerings import spot_terms_of
from broker.services.placement.slot_search import pool_of
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope


@dataclass(frozen=True, slots=True)
class SpotConditions:
    """What a new spot lease is promised, and what happened to others of its pool."""

    terms: SpotTerms
    risk: ReclaimRisk


def load_spot_conditions(offerings: Iterable[Offering], *, now: datetime) -> dict[str, SpotConditions]:
    """Return the conditions of the spot offerings among these; one query, none without any."""
    terms = {offering: found for offering in offerings if (found := spot_terms_of(offering))}
    if not terms:
        return {}
    with system_scope():
        rows = query_rows("broker/queue/spot_outcomes", {"since": now - RISK_WINDOW})
    risks = {(model, region): ReclaimRisk(leases, preempted) for model, region, leases, preempted in rows}
    return {
        offering.pk: SpotConditions(found, risks.get(pool_of(offering), ReclaimRisk(0, 0)))
        for offering, found in terms.items()
    }
