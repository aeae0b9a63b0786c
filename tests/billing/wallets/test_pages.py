"""How a tenant pays and stands, on its own pages, on the operators' and over the API."""

import pytest
from django.test import Client

from billing.models import TenantTerms
from billing.portal.standing import lasts, runway
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.walls import as_tenant
from tests.billing.pages import words
from tests.billing.wallets.pockets import WHY, credit, prepaid, set_terms
from tests.tenants.people import Api
from tests.world import NOW, Home, alive, offering

pytestmark = pytest.mark.django_db


def visitor(kestrel: Home, role: Role = Role.BILLING) -> Client:
    client = Client()
    client.force_login(kestrel.member(role))
    return client


def test_who_pays_beforehand_reads_what_is_free_and_for_how_long(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 1000)
        client = visitor(kestrel)
        assert "Wallet €10.00 nothing burns" in words(client.get("/wallet/"))
        life.lease(kestrel, offering(), max_duration_s=9 * 3600)
        shown = words(client.get("/wallet/"))
        assert "Wallet €8.98 8 h at this burn" in shown
        assert "Taken €1.02" in shown
        assert "Available €8.98" in shown
        assert "You pay beforehand." in shown
        child = kestrel.child("below")
        assert child.pk
        assert "h at this burn" not in words(visitor(kestrel, Role.MEMBER).get("/leases/"))


def test_who_pays_by_invoice_reads_nothing_of_it(kestrel: Home) -> None:
    with alive():
        shown = words(visitor(kestrel).get("/wallet/"))
    assert "Available" not in shown
    assert "at this burn" not in shown


def test_how_long_money_lasts_is_said_in_hours_and_then_in_days() -> None:
    assert (runway(100, 10**9, "EUR"), runway(100, 0, "EUR"), runway(100, 10**9, "JPY")) == (1, None, 100)
    assert (lasts(47), lasts(48), lasts(60), lasts(None)) == (
        "47 h at this burn",
        "2 days at this burn",
        "3 days at this burn",
        "nothing burns",
    )


def test_every_page_says_how_a_tenant_stands_that_does_not_stand_well(kestrel: Home) -> None:
    with alive():
        client = visitor(kestrel, Role.MEMBER)
        assert "overdue" not in words(client.get("/"))
        set_terms(kestrel, standing="grace")
        assert f"Something is overdue. Everything goes on for now. {WHY}" in words(client.get("/leases/"))
        set_terms(kestrel, standing="suspended")
        assert f"What runs goes on. {WHY}" in words(client.get("/"))


def test_the_launch_page_says_that_there_is_no_money_before_it_is_asked(kestrel: Home) -> None:
    with alive():
        prepaid(kestrel)
        shown = words(visitor(kestrel, Role.OWNER).get("/launch/"))
        assert "of the wallet are free" in shown


def test_the_api_tells_how_one_pays_and_refuses_what_there_is_no_money_for(kestrel: Home) -> None:
    with alive():
        prepaid(kestrel)
        api = Api(kestrel.token(Role.OWNER))
        told = api.get("/api/v1/wallet").json()
        assert (told["payment"], told["standing"], told["why"]) == ("prepaid", "good", WHY)
        assert told["available"] == {"amount": "0.000000", "currency": "EUR"}
        asked = {
            "project": kestrel.project.pk,
            "offering": offering().pk,
            "name": "x",
            "max_duration_s": 3600,
        }
        answer = api.ask("POST", "leases", asked)
        assert answer.status_code == 402  # type: ignore[attr-defined]
        assert answer.json()["missing"] == "€1.02"  # type: ignore[attr-defined]


def test_operators_set_terms_for_a_reason_and_the_trail_says_so(operator: Client, kestrel: Home) -> None:
    address = f"/ops/terms/{kestrel.tenant.pk}/"
    with clock.standing_at(NOW):
        assert "Terms of Kestrel" in words(operator.get(address))
        form = {"payment": "prepaid", "standing": "good", "reason": WHY}
        for _ in range(2):
            assert operator.post(address, form).status_code == 302
        assert "Kestrel has these terms now." in words(operator.get(address))
        for wrong in ({"payment": "never"}, {"standing": "fine"}, {"reason": " "}):
            assert operator.post(address, form | wrong).status_code == 400
        assert operator.get("/ops/terms/ten_x/").status_code == 404
        (row,) = operator.get("/api/v1/ops/terms?payment=prepaid").json()["items"]
        assert (row["tenant"]["name"], row["why"]) == ("Kestrel", WHY)
        assert operator.post(address, form | {"payment": "invoice"}).status_code == 302
    with as_tenant(kestrel.tenant.pk):
        assert TenantTerms.objects.get().version == 2
        told = [event.detail for event in AuditEvent.objects.filter(action="terms.set").order_by("pk")]
    assert [(each["before"], each["after"]) for each in told] == [
        ("invoice, good", "prepaid, good"),
        ("prepaid, good", "invoice, good"),
    ]
