"""The contract of every payment gateway."""

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
def stand(request: pytest.FixtureRequest) -> GatewayUnderTest:
    made: GatewayUnderTest = STANDS[request.param]()
    return made


def test_a_charge_goes_through_and_has_a_reference(stand: GatewayUnderTest) -> None:
    outcome = stand.gateway.charge(CHARGE, now=NOW)
    assert isinstance(outcome, Succeeded)
    assert 0 < len(outcome.reference) <= LONGEST_REFERENCE
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_the_same_key_twice_is_one_payment_with_one_answer(stand: GatewayUnderTest) -> None:
    first = stand.gateway.charge(CHARGE, now=NOW)
    assert stand.gateway.charge(CHARGE, now=NOW + timedelta(days=400)) == first
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_another_key_is_another_payment(stand: GatewayUnderTest) -> None:
    other = GatewayCharge("pay_02", 5, "JPY", "ten_tern", "Invoice 2026-10-0002")
    first, second = (stand.gateway.charge(charge, now=NOW) for charge in (CHARGE, other))
    assert first != second
    assert stand.taken() == {"pay_01": (164218, "EUR"), "pay_02": (5, "JPY")}


@pytest.mark.parametrize(
    "other", [(164219, "EUR", "ten_kestrel"), (164218, "USD", "ten_kestrel"), (164218, "EUR", "x")]
)
def test_a_key_never_stands_for_a_second_charge(stand: GatewayUnderTest, other: tuple[int, str, str]) -> None:
    stand.gateway.charge(CHARGE, now=NOW)
    with pytest.raises(ChargeKeyTaken, match="pay_01"):
        stand.gateway.charge(GatewayCharge("pay_01", *other, "Invoice 2026-10-0001"), now=NOW)
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_a_declined_charge_says_why_and_stays_declined(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "declined")
    first = stand.gateway.charge(CHARGE, now=NOW)
    assert isinstance(first, Declined)
    assert first.reason.endswith(".")
    assert first.code.isidentifier()
    assert len(first.code) <= LONGEST_CODE
    assert stand.gateway.charge(CHARGE, now=NOW) == first
    assert stand.taken() == {}


def test_after_an_answer_that_was_lost_the_same_key_tells_what_happened(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "lost", "lost")
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            stand.gateway.charge(CHARGE, now=NOW)
    assert stand.taken() == {"pay_01": (164218, "EUR")}
    assert isinstance(stand.gateway.charge(CHARGE, now=NOW), Succeeded)
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_one_that_cannot_be_reached_has_taken_nothing(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "unreachable")
    with pytest.raises(GatewayUnreachable):
        stand.gateway.charge(CHARGE, now=NOW)
    assert stand.taken() == {}
    assert isinstance(stand.gateway.charge(CHARGE, now=NOW), Succeeded)


def test_a_rejected_charge_gives_its_reason_and_takes_nothing(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "rejected")
    with pytest.raises(GatewayRejected) as rejection:
        stand.gateway.charge(CHARGE, now=NOW)
    assert rejection.value.reason.endswith(".")
    assert rejection.value.code.isidentifier()
    assert len(rejection.value.code) <= LONGEST_CODE
    assert stand.taken() == {}


def test_after_it_was_repaired_the_same_key_goes_through(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "rejected")
    with pytest.raises(GatewayRejected):
        stand.gateway.charge(CHARGE, now=NOW)
    assert isinstance(stand.gateway.charge(CHARGE, now=NOW), Succeeded)
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_a_charge_that_went_through_unheard_is_found_after_a_rejection(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "lost", "rejected")
    with pytest.raises(OutcomeUnknown):
        stand.gateway.charge(CHARGE, now=NOW)
    with pytest.raises(GatewayRejected):
        stand.gateway.charge(CHARGE, now=NOW)
    assert isinstance(stand.gateway.charge(CHARGE, now=NOW), Succeeded)
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_a_slow_one_says_when_to_ask_again_and_has_an_answer_then(stand: GatewayUnderTest) -> None:
    stand.suffer(CHARGE.payer, "slow")
    with pytest.raises(OutcomeUnknown) as silence:
        stand.gateway.charge(CHARGE, now=NOW)
    assert silence.value.again_in_s > 0
    later = NOW + timedelta(seconds=silence.value.again_in_s)
    assert isinstance(stand.gateway.charge(CHARGE, now=later), Succeeded)
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_a_fault_of_one_payer_does_not_affect_another(stand: GatewayUnderTest) -> None:
    stand.suffer("ten_tern", "unreachable")
    assert isinstance(stand.gateway.charge(CHARGE, now=NOW), Succeeded)


def test_a_gateway_has_a_name_of_limited_length(stand: GatewayUnderTest) -> None:
    assert stand.gateway.name
    assert len(stand.gateway.name) <= 40


# Nothing is to be taken


def test_what_is_withdrawn_first_is_never_taken(stand: GatewayUnderTest) -> None:
    assert isinstance(stand.gateway.withdraw(CHARGE, now=NOW), Declined)
    for days in (0, 400):
        again = NOW + timedelta(days=days)
        assert isinstance(stand.gateway.charge(CHARGE, now=again), Declined)
        assert isinstance(stand.gateway.withdraw(CHARGE, now=again), Declined)
    assert stand.taken() == {}


def test_withdrawing_a_succeeded_charge_returns_its_success(stand: GatewayUnderTest) -> None:
    first = stand.gateway.charge(CHARGE, now=NOW)
    assert stand.gateway.withdraw(CHARGE, now=NOW + timedelta(days=400)) == first
    assert stand.taken() == {"pay_01": (164218, "EUR")}


def test_what_is_withdrawn_is_the_charge_of_its_key_and_no_other(stand: GatewayUnderTest) -> None:
    stand.gateway.charge(CHARGE, now=NOW)
    with pytest.raises(ChargeKeyTaken):
        stand.gateway.withdraw(GatewayCharge("pay_01", 5, "EUR", "ten_kestrel", "x"), now=NOW)


# Money goes back


def back(minor: int, key: str = "ref_01", charge: str = "pay_01") -> GatewayRefund:
    return GatewayRefund(key, charge, minor, "EUR", "ten_kestrel", "Refund of invoice 2026-10-0001")


def test_a_refund_goes_back_once_under_its_key(stand: GatewayUnderTest) -> None:
    stand.gateway.charge(CHARGE, now=NOW)
    first = stand.gateway.refund(back(100), now=NOW)
    assert isinstance(first, Succeeded)
    assert 0 < len(first.reference) <= LONGEST_REFERENCE
    assert stand.gateway.refund(back(100), now=NOW + timedelta(days=400)) == first
    assert stand.sent_back() == {"ref_01": 100}


def test_in_parts_all_goes_back_and_never_more_than_was_taken(stand: GatewayUnderTest) -> None:
    stand.gateway.charge(CHARGE, now=NOW)
    assert isinstance(stand.gateway.refund(back(164219), now=NOW), Declined)
    assert isinstance(stand.gateway.refund(back(164217, "ref_02"), now=NOW), Succeeded)
    assert isinstance(stand.gateway.refund(back(2, "ref_03"), now=NOW), Declined)
    assert isinstance(stand.gateway.refund(back(1, "ref_04"), now=NOW), Succeeded)
    assert stand.sent_back() == {"ref_02": 164217, "ref_04": 1}


def test_a_refund_of_a_charge_that_took_nothing_is_declined(stand: GatewayUnderTest) -> None:
    assert isinstance(stand.gateway.refund(back(1), now=NOW), Declined)
    stand.suffer("ten_kestrel", "declined")
    stand.gateway.charge(CHARGE, now=NOW)
    assert isinstance(stand.gateway.refund(back(1), now=NOW), Declined)
    assert stand.sent_back() == {}
