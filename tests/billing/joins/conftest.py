"""Captured messages for tests of bank receipts."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def captured() -> Iterator[None]:
    """Keep messages to workers instead of sending them."""
    from tests.billing.payments.payable_invoices import captured_messages

    with captured_messages():
        yield
