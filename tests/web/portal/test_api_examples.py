"""Every API example on a page works and returns the page's rows."""

import html
import json
import re

import pytest
from django.test import Client

from billing.services.invoicing import drafts
from billing.services.quotes import quote_answers
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import offering
from tests.web.portal.signed_in_user import EURO, PortalSession

pytestmark = pytest.mark.django_db


def shown(portal: PortalSession, path: str) -> list[str]:
    """Return the calls in a page's drawer."""
    body = portal.get(path).content.decode()
    return [
        html.unescape(text) for text in re.findall(r"<pre class=\"code-block\"[^>]*>(curl.*?)</pre>", body, re.DOTALL)
    ]


def said(portal: PortalSession, call: str) -> tuple[int, dict[str, object]]:
    """Send a shown API call, and return its response."""
    found = re.search(r"'http[^/]*//[^/]*(/api/v1[^']*)'", call)
    assert found, call
    client = Client(headers={"Authorization": f"Bearer {portal.owner.token(Role.OWNER)}"})
    if "-X POST" not in call:
        answer = client.get(found[1])
    else:
        sent = re.search(r"-d '(.*)'", call, re.DOTALL)
        assert sent, call
        key = {"Idempotency-Key": "once"} if "Idempotency-Key" in call else {}
        answer = client.post(found[1], json.loads(sent[1]), content_type="application/json", headers=key)
    is_json = answer["Content-Type"].startswith(("application/json", "application/problem+json"))
    return answer.status_code, answer.json() if is_json else {}


@pytest.mark.deep
def test_every_api_call_shown_on_a_page_succeeds_unchanged(portal: PortalSession) -> None:
    child = portal.owner.create_project("below")
    lease = portal.sim.create_lease(portal.owner, offering("2g.20gb"), project=child, max_duration_s=9000)
    portal.sim.run(100)
    over = portal.sim.create_lease(portal.owner, offering(), project=child)
    portal.sim.run(100)
    portal.sim.release_lease(over)
    portal.sim.run(10)
    waits = portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, quantity=8, same_node=True)
    lease_rating.rate_all_leases(now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
    invoice = re.findall(r"/invoices/(inv_\w+)/", portal.get("/invoices/").content.decode())[0]
    heard = {}
    for path in ("/", "/catalogue/", "/launch/?count=2&same_node=on&command=x&until=2026-11-22T08:00", "/leases/",
                 "/leases/?state=active", f"/leases/{waits.pk}/", "/queue/", "/spend/", "/spend/?by=month",
                 "/spend/?by=week&group=project", "/invoices/", f"/invoices/{invoice}/?line=1"):  # fmt: skip
        for call in shown(portal, path):
            heard[path, call] = said(portal, call)[0]
    assert len(heard) >= 15
    assert {key: status for key, status in heard.items() if status not in (200, 201, 202)} == {}
    [release] = [call for call in shown(portal, f"/leases/{lease.pk}/") if "/release" in call]
    assert said(portal, release)[0] in (200, 202)
    portal.switch_project(child)
    for call in shown(portal, "/spend/"):
        assert said(portal, call)[0] == 200


def test_the_shown_launch_call_starts_a_lease_with_the_form_values(portal: PortalSession) -> None:
    launch, quote, _ = shown(portal, f"/launch/?offering={offering('3g.40gb').pk}&name=by-call&lasts=2+h&count=2")
    assert said(portal, launch)[0] in (201, 202)
    with tenant_scope(portal.owner.tenant.pk):
        lease = Lease.objects.get(name="by-call")
    assert (lease.quantity, lease.max_duration_s, lease.offering_id) == (2, 7200, offering("3g.40gb").pk)
    _, found = said(portal, quote)
    assert found["hold"] == {"amount": "12.000000", "currency": "EUR"}


@pytest.mark.parametrize(
    ("profile", "quantity", "hours"),
    [("1g.10gb", 1, 8), ("whole-gpu", 8, 1), ("whole-gpu", 3, 200), ("3g.40gb", 5, 24)],
)
def test_page_and_api_quote_the_same_price_and_refusal(
    portal: PortalSession, profile: str, quantity: int, hours: int
) -> None:
    portal.owner.set_quota(QuotaKind.UNITS, 30_000)
    portal.owner.set_quota(QuotaKind.GPU_SECONDS, 400 * 3600 * 1000)
    portal.sim.create_lease(portal.owner, offering("2g.20gb"))
    what = offering(profile)
    page = portal.get(f"/launch/?offering={what.pk}&count={quantity}&lasts={hours}+h").context["page"].quote
    with tenant_scope(portal.owner.tenant.pk):
        wanted = LeaseRequest(offering_id=what.pk, name="q", max_duration_s=hours * 3600, quantity=quantity)
        api = quote_answers.answer_quote(
            wanted, project=portal.owner.project, actor=portal.owner.actor, now=portal.sim.now
        )
    assert page.nano_per_hour == api.nano_per_hour
    assert page.max_cost.minor == api.at_most_minor
    assert (page.problem is None) == (api.refusal is None)
    assert page.starts_now == (api.starts == quote_answers.NOW)
    assert [other.difference for other in page.alternatives] == [each.difference_minor for each in api.alternatives]


def test_the_page_refuses_a_lease_beyond_the_burn_quota(portal: PortalSession, settings: object) -> None:
    portal.owner.set_quota(QuotaKind.BURN, 3 * EURO)
    assert portal.get(f"/launch/?offering={offering('3g.40gb').pk}").context["page"].quote.problem is None
    assert "this needs €4.00" in portal.read(f"/launch/?offering={offering('4g.40gb').pk}")
