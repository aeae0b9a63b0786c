"""Requests that schemathesis generates from the API's description, sent as every role, and their responses checked."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from broker.models import Cluster, Offering
from tenants.domain.operator_scopes import OPERATOR_SCOPES, WRITE
from tenants.services import operator_tokens
from tenants.services.actors import Actor
from tests.architecture.matrix import ROWS, Row, an_offering
from tests.architecture.routes import PLACE
from tests.architecture.visitors import Visitors, rolled_back
from tests.tenants.tenant_setup import current_time, leave_tenant

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
ROLES = ("viewer", "member", "billing", "admin", "owner", "operator", "anonymous")
PLACE_NAME = re.compile(r"{(\w+)}")
_keys = itertools.count()


@dataclass
class Findings:
    """Responses by status, and what was wrong with some."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        served = ", ".join(f"{count} × {status}" for status, count in sorted(self.statuses.items()))
        return "\n".join([f"{sum(self.statuses.values())} responses: {served}", *self.faults[:40]])


class Fuzzer:
    """The API's operations, and the rows their addresses and bodies may name."""

    def __init__(self) -> None:
        self.who = Visitors()
        self.schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", WSGIHandler())
        self.rows = {"/" + PLACE.sub("{}", route): (route, row) for route, row in ROWS.items()}
        offering = an_offering().pk
        here = self.who.here
        self.known = {
            "project": here.root.pk,
            "parent": here.root.pk,
            "tenant": here.tenant.pk,
            "offering": offering,
            "cluster": getattr(Cluster.objects.first(), "pk", ""),
        }
        scopes = sorted(scope for scope in OPERATOR_SCOPES if scope.endswith(WRITE))
        _, operator = operator_tokens.issue_operator_token(
            self.who.staff,
            name="fuzz",
            scopes=scopes,
            expires_at=current_time() + timedelta(days=1),
            actor=Actor("staff", self.who.staff.pk),
            now=current_time(),
        )
        self.tokens = {**self.who.tokens, "operator": operator}

    def operations(self) -> Iterator[Any]:
        """Yield every operation of the description."""
        for found in self.schema.get_all_operations():
            yield found.ok()

    def row_of(self, path: str) -> tuple[str, Row]:
        """Return the route and the row of the access table of an operation's path."""
        return self.rows[PLACE_NAME.sub("{}", path)]

    def send_generated(self, operation: Any, *, examples: int, roles: tuple[str, ...], findings: Findings) -> None:
        """Send generated requests of an operation as each role."""
        route, row = self.row_of(operation.path)
        own, _ = self.who.thing(row, route) if row.thing else ((), ())
        Offering.objects.filter(gpu_model="H200-141GB").update(state="draft")  # of histories: no real shape
        turn = itertools.count()

        @settings(
            max_examples=examples,
            database=None,
            derandomize=True,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send_each(case: Any) -> None:
            number = next(turn)
            if number % 4 != 3:  # of four, one keeps the ids that were made up
                for name, known in zip(PLACE_NAME.findall(operation.path), own, strict=True):
                    case.path_parameters[name] = known
                self.name_known_rows(case.body)
            for role in roles:
                self.send(case, role, findings)

        send_each()

    def name_known_rows(self, body: Any) -> None:
        """Put ids that exist in place of made-up ones."""
        if not isinstance(body, dict):
            return
        for name, value in body.items():
            if name in self.known and isinstance(value, str):
                body[name] = self.known[name]
            for inner in value if isinstance(value, list) else [value]:
                self.name_known_rows(inner)

    def send(self, case: Any, role: str, findings: Findings) -> None:
        """Send one request in a transaction that is rolled back, and check its response."""
        headers = {"Idempotency-Key": f"fuzz-{next(_keys)}", "If-Match": "*"}
        case.headers.pop("Authorization", None)
        if role in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        case.headers.update(headers)
        try:
            with rolled_back():
                response = case.call()
        finally:
            leave_tenant()
        findings.statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except schemathesis.core.failures.FailureGroup as group:
            for fault in group.exceptions:
                findings.faults.append(_fault_text(case, role, response, fault))


def _fault_text(case: Any, role: str, response: Any, fault: BaseException) -> str:
    said = " ".join(str(fault).split())[:400]
    body = json.dumps(case.body, default=str)[:200] if isinstance(case.body, dict) else ""
    return f"{role} {case.method} {case.formatted_path}?{case.query or ''} {body}: {response.status_code}, {said}"
