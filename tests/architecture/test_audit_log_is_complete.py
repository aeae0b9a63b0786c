"""The audit log records every change over the API with its actor and request."""

from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from tenants.models import AuditEvent
from tenants.services import rls
from tests.architecture import matrix
from tests.architecture.matrix import ROWS, Row
from tests.architecture.visitors import SAFE, Visitors, address_with_own_ids, rows
from tests.tenants import tenant_setup

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]

# Where the matrix has no body, or one that changes nothing.
BODIES: dict[str, dict[str, Any]] = {
    "api/v1/leases/<str:pk>/extend": {"more_s": 60},
    "api/v1/members/<str:pk>": {"role": "member"},
    "api/v1/service-accounts/<str:pk>": {"role": "admin"},
    "api/v1/billing-details": {"name": "Delta", "street": "Weg 1", "city": "Berlin", "country": "DE"},
    "api/v1/approval-limits": {"max_cost": "500.00", "max_gpus": None, "max_duration_s": 86400},
    "api/v1/approval-requests/<str:pk>/decline": {"reason": "too large"},
    "api/v1/topups": {"amount": "10.00"},
    "api/v1/discounts": {"code": "NOBODY-MADE-IT"},
    "api/v1/topup-rule": {"threshold": "10.00", "amount": "50.00"},
}
# Routes this fixture answers with 409; the named files test their audit records.
ELSEWHERE = {
    "api/v1/approval-requests": "tests/web/api/test_approvals.py",
    "api/v1/leases/<str:pk>/stop": "tests/broker/services/leases/test_stop_and_start.py",
    "api/v1/leases/<str:pk>/start": "tests/broker/services/leases/test_stop_and_start.py",
    "api/v1/discounts": "tests/web/portal/discounts/test_discount_pages.py",
    "api/v1/topups": "tests/web/portal/topups/test_topup_pages.py",
    "api/v1/invoices/<str:pk>/pay": "tests/billing/payments/test_payments.py",
    "api/v1/payment-card-forms": "tests/billing/stripe/test_payment_card_pages.py",
}


def mutating_routes() -> list[tuple[str, Row, str]]:
    found = [(route, row, method) for route, row in rows("api") for method in row.methods]
    return [(route, row, method) for route, row, method in found if method not in SAFE and row.stores]


def test_every_change_over_the_api_is_audited_with_its_actor() -> None:
    who = Visitors()
    api, here = tenant_setup.ApiClient(who.tokens["owner"]), who.here.tenant.pk
    for route, row, method in mutating_routes():
        path = "/" + address_with_own_ids(who, route, row).lstrip("/")
        with rls.tenant_scope(here):
            body = BODIES.get(route) or (row.body(who.here) if row.body else None)
            if route == "api/v1/approval-requests":  # it exceeds no limit here
                body = {"launch": matrix.ROWS["api/v1/leases"].body(who.here)}
        tenant_setup.leave_tenant()
        with transaction.atomic():
            answer: Any = api.send(
                method, path, None if method == "DELETE" else body, If_Match="*", X_Request_ID="req-of-matrix"
            )
            with rls.tenant_scope(here):
                trail = AuditEvent.objects.filter(request_id="req-of-matrix", actor_id=who.here.owner.pk)
                actions = list(trail.values_list("action", flat=True))
            transaction.set_rollback(True)
        tenant_setup.leave_tenant()
        if route in ELSEWHERE:
            assert (answer.status_code, actions) == (409, []), (method, route, answer.content)
        else:
            assert answer.status_code < 300, (method, route, answer.content)
            assert actions, f"{method} {route}: the audit trail is silent"


def test_routes_audited_in_other_tests_are_still_tested_there() -> None:
    for route, file in ELSEWHERE.items():
        last, text = route.rpartition("/")[2], (ROOT / file).read_text()
        assert f'.{last}"' in text or f'/{last}"' in text
    assert set(ELSEWHERE) | set(BODIES) <= set(ROWS)
