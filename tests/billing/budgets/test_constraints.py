"""PostgreSQL constraints on budget months and hold parts."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.models import BudgetMonth, Hold, HoldPart
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import create_budget
from tests.simulation import Simulation, TenantContext, create_tenant, offering, simulate

pytestmark = pytest.mark.django_db


def refused(owner: TenantContext, attack: Callable[[], Any], match: str) -> None:
    with tenant_scope(owner.tenant.pk), pytest.raises(DatabaseError, match=match), transaction.atomic():
        attack()


def create_hold_part(kestrel: TenantContext, sim: Simulation) -> HoldPart:
    create_budget(kestrel, 500, sim)
    sim.request_lease(kestrel, offering())
    with tenant_scope(kestrel.tenant.pk):
        return HoldPart.objects.select_related("month").get()


def test_a_hold_part_covers_its_spend_and_cannot_move_to_another_month(kestrel: TenantContext) -> None:
    with simulate() as sim:
        part = create_hold_part(kestrel, sim)
        rows = HoldPart.objects.filter(pk=part.pk)
        refused(kestrel, lambda: rows.update(spent_num=part.num + 1), "hold_part_covers")
        refused(kestrel, lambda: rows.update(num=-1), "hold_part_covers")
        create_budget(kestrel, 500, sim, kestrel.create_project("docking"))
        with tenant_scope(kestrel.tenant.pk):
            other = BudgetMonth.objects.exclude(pk=part.month_id).get()
        refused(kestrel, lambda: rows.update(month_id=other.pk), "stays with its hold")


def test_a_budget_month_equals_the_sum_of_its_hold_parts(kestrel: TenantContext) -> None:
    with simulate() as sim:
        part = create_hold_part(kestrel, sim)
        assert part.month.taken_num == part.num
        with tenant_scope(kestrel.tenant.pk):
            rows = BudgetMonth.objects.filter(pk=part.month_id)
            HoldPart.objects.filter(pk=part.pk).update(num=7, spent_num=3)
            assert rows.values_list("taken_num", "spent_num").get() == (7, 3)
            part.delete()
            assert rows.values_list("taken_num", "spent_num").get() == (0, 0)
        refused(kestrel, lambda: rows.update(spent_num=1), "budget_month_adds_up")
        refused(kestrel, lambda: rows.update(base_num=1), "budget_month_adds_up")


def test_a_hold_part_belongs_to_its_own_tenants_hold_and_month(kestrel: TenantContext) -> None:
    heron = create_tenant("Heron")
    with simulate() as sim:
        ours = create_hold_part(kestrel, sim)
        lease = sim.request_lease(heron, offering())
        with tenant_scope(heron.tenant.pk):
            hold = Hold.objects.create(
                tenant=heron.tenant, lease=lease, currency="EUR", opened_at=sim.now, checked_at=sim.now
            )
        theirs = {"tenant_id": heron.tenant.pk, "num": 1}
        into_ours = HoldPart(hold_id=hold.pk, month_id=ours.month_id, **theirs)
        refused(heron, into_ours.save, "of its tenant|foreign key")
        create_budget(heron, 500, sim, heron.create_project("fishing"))
        with tenant_scope(heron.tenant.pk):
            month = BudgetMonth.objects.get()
        of_ours = HoldPart(hold_id=ours.hold_id, month_id=month.pk, **theirs)
        refused(heron, of_ours.save, "of its tenant|foreign key")
