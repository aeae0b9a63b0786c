"""No generated request breaks the API, and every response is as its description says.

The suite sends a few requests of every operation; `make fuzz` sends more, as every role.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from tests.fuzz.generated_requests import ROLES, Findings, Fuzzer
from tests.tiers import by_fifths, take_fifth

pytestmark = pytest.mark.django_db
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))  # of each operation and role; 0: the small run
FEW, EVERY_FOURTH = 2, 4


@pytest.fixture
def fuzzer(settings: Any) -> Iterator[Fuzzer]:
    settings.OPERATORS_REQUIRE_MFA = False
    # As Django's test client does: the test's connection outlives each request.
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield Fuzzer()
    for signal in signals:
        signal.connect(close_old_connections)


def roles_of(number: int, operation: Any) -> tuple[str, ...]:
    """Return who sends requests of an operation: all, or in the small run often only who may do the most."""
    if EXAMPLES or number % EVERY_FOURTH == 0:
        return ROLES
    return ("operator",) if "/ops/" in operation.path else ("owner",)


@by_fifths
def test_generated_requests_break_nothing(fuzzer: Fuzzer, fifth: int) -> None:
    findings = Findings()
    for number, operation in enumerate(take_fifth(list(fuzzer.operations()), fifth)):
        roles = roles_of(number, operation)
        fuzzer.send_generated(operation, examples=EXAMPLES or FEW, roles=roles, findings=findings)
    print(findings)
    assert not findings.faults, findings
    assert findings.statuses[200] > 10, findings
