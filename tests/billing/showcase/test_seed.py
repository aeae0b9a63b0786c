"""A first start: a fleet that looks lived in, people who can sign in, and a token that launches."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services.ledger import books
from broker.models import Lease, Offering
from broker.services import proofs as capacity_proofs
from ports import clock, payments
from tenants.domain import credentials
from tenants.models import Project, Quota
from tenants.services import doors
from tenants.services.actors import Actor
from tenants.services.walls import as_staff, as_sweep
from tests.world import Home, alive, fresh

NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def seed() -> dict[str, Any]:
    said = StringIO()
    with clock.standing_at(NOW), payments.through(SimulatedGateway()):
        call_command("seed", stdout=said)
    answer: dict[str, Any] = json.loads(said.getvalue())
    return answer


def test_a_first_start_is_lived_in_and_every_proof_holds() -> None:
    answer = seed()
    with as_sweep():
        states = list(Lease.objects.values_list("state", flat=True))
        assert states.count("active") > 50
        assert states.count("released") > 80
        assert [lease.name for lease in Lease.objects.filter(state="queued")] == ["sweep-32"]
        assert {invoice.status for invoice in Invoice.objects.all()} == {"draft", "paid"}
        assert all(quota.used <= quota.limit for quota in Quota.objects.all())
    with as_staff():
        assert all(proof.holds for proof in capacity_proofs.check(now=NOW))
        (euros,), drifts = books.reckoned()
        assert (euros.balanced, drifts, books.uncleared(), books.missing()) == (True, (), [], [])
        paid = sum(invoice.total for invoice in Invoice.objects.filter(status="paid"))
        assert {line.type: line.debit for line in euros.lines if line.debit} == {"cash": paid}
        assert paid > 0
    for account in answer["accounts"]:
        assert authenticate(None, username=account["email"], password=account["password"])
    with clock.standing_at(NOW):
        visitor = doors.by_token(credentials.read(answer["token"]), request_id="", now=NOW)  # type: ignore[arg-type]
    assert visitor is not None
    assert visitor.tenant.name == "Kestrel Bio"
    assert visitor.grants.anywhere("leases.write")
    offering = Offering.objects.get(label="H200 1g.18gb", price_class="on_demand")
    assert answer["launch"]["offering"] == offering.pk
    assert seed() == {"seeded": False}, "a second seed changes nothing"
    with as_sweep():
        assert Lease.objects.count() == len(states)


@pytest.mark.parametrize("later", [timedelta(), timedelta(minutes=30), timedelta(hours=2)])
def test_what_is_printed_launches_at_once_however_long_it_has_run(later: timedelta) -> None:
    wanted = seed()["launch"]
    with as_staff():
        project = Project.objects.select_related("tenant").get(pk=wanted["project"])
    mira = Home(project.tenant, project, Actor("user", "usr_mira", "mira@kestrel.example"))
    with alive(NOW + later) as life:
        life.go(60)
        lease = life.ask(mira, Offering.objects.get(pk=wanted["offering"]))
        life.run(30)
        assert fresh(lease).state == "active"
