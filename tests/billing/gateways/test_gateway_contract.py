"""Contract of every payment gateway."""

from datetime import timedelta

import pytest

from ports.payments import (
    ChargeKeyTaken,
    Declined,
    GatewayCharge,
    GatewayRefund,
    GatewayRejected,
    GatewayUnreachable,
    OutcomeUnknown,
    Succeeded,
)
from tests.billing.gateways.tested_gateways import NOW, STANDS, GatewayUnderTest

pytestmark = pytest.mark.django_db
CHARGE = GatewayCharge("pay_01", 164218, "EUR", "ten_kestrel", "Invoice 2026-10-0001")
LONGEST_REFERENCE, LONGEST_CODE = 120, 60  # what a payment's row holds


@pytest.fixture(params=sorted(STANDS))
def under_test(request: pytest.FixtureRequest) -> GatewayUnderTest:
    made: GatewayUnderTest = STANDS[request.param]()
    return made


def test_a_succeeded_charge_has_a_reference(under_test: GatewayUnderTest) -> None:
    outcome = under_test.gateway.charge(CHARGE, now=NOW)
    assert isinstance(outcome, Succeeded)
    assert 0 < len(outcome.reference) <= LONGEST_REFERENCE
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_repeated_charge_with_one_key_charges_once_with_the_same_answer(under_test: GatewayUnderTest) -> None:
    first = under_test.gateway.charge(CHARGE, now=NOW)
    assert under_test.gateway.charge(CHARGE, now=NOW + timedelta(days=400)) == first
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_charge_with_another_key_is_a_separate_payment(under_test: GatewayUnderTest) -> None:
    other = GatewayCharge("pay_02", 5, "JPY", "ten_tern", "Invoice 2026-10-0002")
    first, second = (under_test.gateway.charge(charge, now=NOW) for charge in (CHARGE, other))
    assert first != second
    assert under_test.taken() == {"pay_01": (164218, "EUR"), "pay_02": (5, "JPY")}


@pytest.mark.parametrize(
    "other", [(164219, "EUR", "ten_kestrel"), (164218, "USD", "ten_kestrel"), (164218, "EUR", "x")]
)
def test_a_key_cannot_be_reused_for_another_charge(under_test: GatewayUnderTest, other: tuple[int, str, str]) -> None:
    under_test.gateway.charge(CHARGE, now=NOW)
    with pytest.raises(ChargeKeyTaken, match="pay_01"):
        under_test.gateway.charge(GatewayCharge("pay_01", *other, "Invoice 2026-10-0001"), now=NOW)
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_declined_charge_has_a_reason_and_stays_declined(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "declined")
    first = under_test.gateway.charge(CHARGE, now=NOW)
    assert isinstance(first, Declined)
    assert first.reason.endswith(".")
    assert first.code.isidentifier()
    assert len(first.code) <= LONGEST_CODE
    assert under_test.gateway.charge(CHARGE, now=NOW) == first
    assert under_test.taken() == {}


def test_a_charge_with_a_lost_answer_is_found_by_its_key(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "lost", "lost")
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            under_test.gateway.charge(CHARGE, now=NOW)
    assert under_test.taken() == {"pay_01": (164218, "EUR")}
    assert isinstance(under_test.gateway.charge(CHARGE, now=NOW), Succeeded)
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_an_unreachable_gateway_charges_nothing(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "unreachable")
    with pytest.raises(GatewayUnreachable):
        under_test.gateway.charge(CHARGE, now=NOW)
    assert under_test.taken() == {}
    assert isinstance(under_test.gateway.charge(CHARGE, now=NOW), Succeeded)


def test_a_rejected_charge_gives_its_reason_and_takes_nothing(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "rejected")
    with pytest.raises(GatewayRejected) as rejection:
        under_test.gateway.charge(CHARGE, now=NOW)
    assert rejection.value.reason.endswith(".")
    assert rejection.value.code.isidentifier()
    assert len(rejection.value.code) <= LONGEST_CODE
    assert under_test.taken() == {}


def test_a_rejected_charge_succeeds_with_the_same_key_once_fixed(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "rejected")
    with pytest.raises(GatewayRejected):
        under_test.gateway.charge(CHARGE, now=NOW)
    assert isinstance(under_test.gateway.charge(CHARGE, now=NOW), Succeeded)
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_succeeded_charge_with_a_lost_answer_is_found_after_a_rejection(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "lost", "rejected")
    with pytest.raises(OutcomeUnknown):
        under_test.gateway.charge(CHARGE, now=NOW)
    with pytest.raises(GatewayRejected):
        under_test.gateway.charge(CHARGE, now=NOW)
    assert isinstance(under_test.gateway.charge(CHARGE, now=NOW), Succeeded)
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_slow_gateway_states_when_to_retry_and_then_answers(under_test: GatewayUnderTest) -> None:
    under_test.suffer(CHARGE.payer, "slow")
    with pytest.raises(OutcomeUnknown) as silence:
        under_test.gateway.charge(CHARGE, now=NOW)
    assert silence.value.again_in_s > 0
    later = NOW + timedelta(seconds=silence.value.again_in_s)
    assert isinstance(under_test.gateway.charge(CHARGE, now=later), Succeeded)
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_fault_of_one_payer_does_not_affect_another(under_test: GatewayUnderTest) -> None:
    under_test.suffer("ten_tern", "unreachable")
    assert isinstance(under_test.gateway.charge(CHARGE, now=NOW), Succeeded)


def test_a_gateway_has_a_name_of_limited_length(under_test: GatewayUnderTest) -> None:
    assert under_test.gateway.name
    assert len(under_test.gateway.name) <= 40


# Nothing is to be taken


def test_a_charge_withdrawn_before_it_is_made_is_never_taken(under_test: GatewayUnderTest) -> None:
    assert isinstance(under_test.gateway.withdraw(CHARGE, now=NOW), Declined)
    for days in (0, 400):
        again = NOW + timedelta(days=days)
        assert isinstance(under_test.gateway.charge(CHARGE, now=again), Declined)
        assert isinstance(under_test.gateway.withdraw(CHARGE, now=again), Declined)
    assert under_test.taken() == {}


def test_withdrawing_a_succeeded_charge_returns_its_success(under_test: GatewayUnderTest) -> None:
    first = under_test.gateway.charge(CHARGE, now=NOW)
    assert under_test.gateway.withdraw(CHARGE, now=NOW + timedelta(days=400)) == first
    assert under_test.taken() == {"pay_01": (164218, "EUR")}


def test_a_withdrawal_with_the_key_of_another_charge_is_refused(under_test: GatewayUnderTest) -> None:
    under_test.gateway.charge(CHARGE, now=NOW)
    with pytest.raises(ChargeKeyTaken):
        under_test.gateway.withdraw(GatewayCharge("pay_01", 5, "EUR", "ten_kestrel", "x"), now=NOW)


# Money goes back


def refund_of(minor: int, key: str = "ref_01", charge: str = "pay_01") -> GatewayRefund:
    return GatewayRefund(key, charge, minor, "EUR", "ten_kestrel", "Refund of invoice 2026-10-0001")


def test_a_repeated_refund_with_one_key_refunds_once(under_test: GatewayUnderTest) -> None:
    under_test.gateway.charge(CHARGE, now=NOW)
    first = under_test.gateway.refund(refund_of(100), now=NOW)
    assert isinstance(first, Succeeded)
    assert 0 < len(first.reference) <= LONGEST_REFERENCE
    assert under_test.gateway.refund(refund_of(100), now=NOW + timedelta(days=400)) == first
    assert under_test.sent_back() == {"ref_01": 100}


def test_partial_refunds_never_exceed_the_charge(under_test: GatewayUnderTest) -> None:
    under_test.gateway.charge(CHARGE, now=NOW)
    assert isinstance(under_test.gateway.refund(refund_of(164219), now=NOW), Declined)
    assert isinstance(under_test.gateway.refund(refund_of(164217, "ref_02"), now=NOW), Succeeded)
    assert isinstance(under_test.gateway.refund(refund_of(2, "ref_03"), now=NOW), Declined)
    assert isinstance(under_test.gateway.refund(refund_of(1, "ref_04"), now=NOW), Succeeded)
    assert under_test.sent_back() == {"ref_02": 164217, "ref_04": 1}


def test_a_refund_of_a_charge_that_took_nothing_is_declined(under_test: GatewayUnderTest) -> None:
    assert isinstance(under_test.gateway.refund(refund_of(1), now=NOW), Declined)
    under_test.suffer("ten_kestrel", "declined")
    under_test.gateway.charge(CHARGE, now=NOW)
    assert isinstance(under_test.gateway.refund(refund_of(1), now=NOW), Declined)
    assert under_test.sent_back() == {}
