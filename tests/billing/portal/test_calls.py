"""Every call that a page shows works as it stands, and tells the same as the page."""

import html
import json
import re

import pytest
from django.test import Client

from billing.services import drafts, quotes, rating
from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services.leases.request import Wanted
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import EURO, Desk
from tests.world import offering

pytestmark = pytest.mark.django_db


def shown(desk: Desk, path: str) -> list[str]:
    """Return the calls in a page's drawer."""
    body = desk.get(path).content.decode()
    return [
        html.unescape(text)
        for text in re.findall(r"<pre class=\"src\"[^>]*>(curl.*?)</pre>", body, re.DOTALL)
    ]


def said(desk: Desk, call: str) -> tuple[int, dict[str, object]]:
    """Do what a call says and return the answer."""
    found = re.search(r"'http[^/]*//[^/]*(/api/v1[^']*)'", call)
    assert found, call
    client = Client(headers={"Authorization": f"Bearer {desk.owner.token(Role.OWNER)}"})
    if "-X POST" not in call:
        answer = client.get(found[1])
    else:
        sent = re.search(r"-d '(.*)'", call, re.DOTALL)
        assert sent, call
        key = {"Idempotency-Key": "once"} if "Idempotency-Key" in call else {}
        answer = client.post(found[1], json.loads(sent[1]), content_type="application/json", headers=key)
    is_json = answer["Content-Type"].startswith(("application/json", "application/problem+json"))
    return answer.status_code, answer.json() if is_json else {}


def test_every_call_that_is_shown_works_as_it_stands(desk: Desk) -> None:
    child = desk.owner.child("below")
    lease = desk.life.lease(desk.owner, offering("2g.20gb"), project=child, max_duration_s=9000)
    desk.life.run(100)
    over = desk.life.lease(desk.owner, offering(), project=child)
    desk.life.run(100)
    desk.life.release(over)
    desk.life.run(10)
    waits = desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED, quantity=8, same_node=True)
    rating.rate(now=desk.life.now)
    with as_tenant(desk.owner.tenant.pk):
        drafts.refresh(desk.owner.tenant, now=desk.life.now)
    invoice = re.findall(r"/invoices/(inv_\w+)/", desk.get("/invoices/").content.decode())[0]
    heard = {}
    for path in ("/", "/catalogue/", "/launch/?count=2&same_node=on&command=x&until=2026-11-22T08:00", "/leases/",
                 "/leases/?state=active", f"/leases/{waits.pk}/", "/queue/", "/spend/", "/spend/?by=month",
                 "/spend/?by=week&group=project", "/invoices/", f"/invoices/{invoice}/?line=1"):  # fmt: skip
        for call in shown(desk, path):
            heard[path, call] = said(desk, call)[0]
    assert len(heard) >= 15
    assert {key: status for key, status in heard.items() if status not in (200, 201, 202)} == {}
    [release] = [call for call in shown(desk, f"/leases/{lease.pk}/") if "/release" in call]
    assert said(desk, release)[0] in (200, 202)
    desk.works_in(child)
    for call in shown(desk, "/spend/"):
        assert said(desk, call)[0] == 200


def test_the_launch_call_starts_what_the_form_says(desk: Desk) -> None:
    launch, quote, _ = shown(
        desk, f"/launch/?offering={offering('3g.40gb').pk}&name=by-call&lasts=2+h&count=2"
    )
    assert said(desk, launch)[0] in (201, 202)
    with as_tenant(desk.owner.tenant.pk):
        lease = Lease.objects.get(name="by-call")
    assert (lease.quantity, lease.max_duration_s, lease.offering_id) == (2, 7200, offering("3g.40gb").pk)
    _, told = said(desk, quote)
    assert told["at_most"] == {"amount": "12.000000", "currency": "EUR"}


@pytest.mark.parametrize(
    ("profile", "quantity", "hours"),
    [("1g.10gb", 1, 8), ("card", 8, 1), ("card", 3, 200), ("3g.40gb", 5, 24)],
)
def test_page_and_api_judge_and_price_a_request_alike(
    desk: Desk, profile: str, quantity: int, hours: int
) -> None:
    desk.owner.quota(QuotaKind.UNITS, 30_000)
    desk.owner.quota(QuotaKind.GPU_SECONDS, 400 * 3600 * 1000)
    desk.life.lease(desk.owner, offering("2g.20gb"))
    what = offering(profile)
    page = desk.get(f"/launch/?offering={what.pk}&count={quantity}&lasts={hours}+h").context["quote"]
    with as_tenant(desk.owner.tenant.pk):
        wanted = Wanted(offering_id=what.pk, name="q", max_duration_s=hours * 3600, quantity=quantity)
        api = quotes.quote(wanted, project=desk.owner.project, actor=desk.owner.actor, now=desk.life.now)
    assert page.nano_per_hour == api.nano_per_hour
    assert page.most.minor == api.at_most_minor
    assert (page.refused is None) == (api.refusal is None)
    assert page.fits == (api.starts == quotes.NOW)
    assert [other.more for other in page.others] == [each.difference_minor for each in api.alternatives]


def test_the_page_refuses_what_would_burn_too_much_like_the_gate(desk: Desk, settings: object) -> None:
    desk.owner.quota(QuotaKind.BURN, 3 * EURO)
    assert desk.get(f"/launch/?offering={offering('3g.40gb').pk}").context["quote"].refused is None
    assert "this asks for €4.00" in desk.read(f"/launch/?offering={offering('4g.40gb').pk}")
