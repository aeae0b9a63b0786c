"""Operators' list of leases: states, tenants, words, pages and CSV."""

import csv
import io

import pytest
from django.test import Client

from broker.domain.lifecycle.states import LeaseState
from tests.simulation import Simulation, TenantContext, create_tenant, offering
from tests.web.portal.signed_in_user import visible_text
from web.portal.operators import operator_lists

pytestmark = pytest.mark.django_db


def test_leases_are_listed_by_state_and_tenant(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    sim.create_lease(kestrel, offering("1g.10gb"), name="runs")
    sim.create_lease(kestrel, offering("1g.10gb"), LeaseState.RELEASED, name="ended")
    sim.create_lease(create_tenant("Other"), offering("1g.10gb"), name="foreign")

    def names(query: str) -> set[str]:
        shown = visible_text(operator.get(f"/ops/leases/{query}"))
        return {name for name in ("runs", "ended", "foreign") if f"{name} " in shown}

    assert names("") == {"runs", "foreign"}
    assert names("?state=ended") == {"ended"}
    assert names("?state=all") == {"runs", "ended", "foreign"}
    assert names(f"?state=all&tenant={kestrel.tenant.pk}") == {"runs", "ended"}
    assert names("?state=all&q=fore") == {"foreign"}
    assert names("?state=all&q=other") == {"foreign"}, "by the tenant's name"


def test_a_long_list_has_pages_and_a_csv_of_all(
    sim: Simulation, kestrel: TenantContext, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(operator_lists.PageLists.read.__kwdefaults__, "most", 2)
    leases = [sim.create_lease(kestrel, offering("1g.10gb"), name=f"n{n}") for n in range(3)]
    first = operator.get("/ops/leases/").content.decode()
    assert "n2" in first
    assert leases[0].pk not in first
    assert leases[0].pk in operator.get("/ops/leases/?from=2").content.decode()
    rows = list(csv.DictReader(io.StringIO(operator.get("/ops/leases/?format=csv").content.decode())))
    assert [row["name"] for row in rows] == ["n2", "n1", "n0"]
    assert {row["tenant"] for row in rows} == {kestrel.tenant.pk}
