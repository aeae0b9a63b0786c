"""Spend by requester and by tag."""

from datetime import timedelta

import pytest
from django.test import Client

from billing.services.rating import lease_rating
from broker.models import Lease
from ports import clock
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_priced_offering, utc
from tests.simulation import create_tenant
from web.portal.spend.spend_totals import SpendGroup, SpendTotals

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")


def test_requesters_share_the_rounded_amount_of_their_line() -> None:
    with clock.frozen_at(NOW):
        kestrel = create_tenant("Kestrel")
        offering = create_priced_offering(EURO)
        for n, who in enumerate(("ada", "bob", "")):  # 20 seconds each, together 1.67 cents of one line
            lease = add_ended_lease(kestrel.project, offering, NOW - timedelta(hours=5 - n), HOUR // 180)
            with tenant_scope(kestrel.tenant.pk):
                totals = {"requested_by": f"usr_{who}" if who else "", "requested_by_label": who}
                Lease.objects.filter(pk=lease.pk).update(**totals)
        lease_rating.rate_all_leases(now=NOW)
        payer = Client()
        payer.force_login(kestrel.create_member(Role.BILLING))
        answer = payer.get("/spend/?group=user")
        totals = answer.context["page"].totals
        assert (totals.minor, sorted(group.minor for group in totals.groups)) == (2, [0, 1, 1])
        page = answer.content.decode()
        assert "By user" in page
        assert "no user" in page
        text = payer.get("/spend/?group=user&format=csv").content.decode().splitlines()
    assert sorted(row.split(",")[1] for row in text[1:]) == ["ada", "bob", "no user"]


def test_spend_is_grouped_by_a_tag_and_the_api_call_matches() -> None:
    with clock.frozen_at(NOW):
        kestrel = create_tenant("Kestrel")
        offering = create_priced_offering(EURO)
        for n, tags in enumerate(({"team": "fold & dock"}, {})):
            lease = add_ended_lease(kestrel.project, offering, NOW - timedelta(hours=5 - n), HOUR)
            with tenant_scope(kestrel.tenant.pk):
                Lease.objects.filter(pk=lease.pk).update(tags=tags)
        payer = Client()
        payer.force_login(kestrel.create_member(Role.BILLING))
        answer = payer.get("/spend/?group=tag:team")
        page = answer.content.decode()
    assert [(group.name, group.minor) for group in answer.context["page"].totals.groups] == [
        ("fold & dock", 100),
        ("without the tag team", 100),
    ]
    assert "By team" in page
    assert "group_by=tag&amp;tag=team" in page


def test_the_largest_groups_are_listed_and_the_others_are_combined() -> None:
    totals = SpendTotals(tuple(SpendGroup(f"g{n}", f"g{n}", 10 - n, 3600) for n in range(5)), "EUR")
    assert totals.largest(5) == totals.groups
    *largest, rest = totals.largest(3)
    assert tuple(largest) == totals.groups[:3]
    assert (rest.name, rest.minor, rest.hours) == ("2 more", 7 + 6, "2.0")
