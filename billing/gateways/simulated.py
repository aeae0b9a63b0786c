"""Simulated payment gateway with its own records, declines, delays and lost answers.

Its records are separate tables, so that several workers see one gateway and a crash of ours changes
nothing in them. `SimulatedPayer` keeps the faults that the next charges of a payer will meet. The delay
of a slow charge is derived from its key, so that the same charge always takes as long.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from django.db import connection, transaction

from billing.models import SimulatedCharge, SimulatedRefund
from ports.payments import (
    ChargeKeyTaken,
    Declined,
    GatewayCharge,
    GatewayOutcome,
    GatewayRefund,
    GatewayRejected,
    GatewayUnreachable,
    OutcomeUnknown,
    Succeeded,
)
from ports.rng import Rng

# Creates the charge or returns the existing one, atomically in one statement.
CREATE_CHARGE = """
INSERT INTO billing_simulatedcharge (key, payer, minor, currency, text, declined, made_at, answers_at)
VALUES (%(key)s, %(payer)s, %(minor)s, %(currency)s, %(text)s, %(declined)s, %(made_at)s, %(answers_at)s)
ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING *
"""
# A statement of its own: after waiting for the lock, the next statement sees refunds made meanwhile.
LOCK_CHARGE = "SELECT 1 FROM billing_simulatedcharge WHERE key = %s FOR UPDATE"
# Refunds up to what is left of a charge, or returns the refund with this key.
CREATE_REFUND = """
WITH charge AS (
  SELECT key, minor FROM billing_simulatedcharge
   WHERE key = %(charge)s AND currency = %(currency)s AND NOT declined AND answers_at <= %(now)s
), back AS (
  SELECT coalesce(sum(r.minor), 0) AS minor FROM charge JOIN billing_simulatedrefund r ON r.charge_id = charge.key
)
INSERT INTO billing_simulatedrefund (key, charge_id, minor, made_at)
SELECT %(key)s::varchar, charge.key, %(minor)s, %(now)s FROM charge, back
 WHERE charge.minor >= back.minor + %(minor)s
    OR EXISTS (SELECT FROM billing_simulatedrefund r WHERE r.key = %(key)s::varchar)
ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING *
"""
# Removes the first fault from the payer's list.
TAKE_FAULT = """
WITH was AS (
  SELECT payer, pending_faults->>0 AS fault FROM billing_simulatedpayer
  WHERE payer = %s AND jsonb_array_length(pending_faults) > 0 FOR UPDATE
)
UPDATE billing_simulatedpayer p SET pending_faults = p.pending_faults - 0
  FROM was WHERE p.payer = was.payer RETURNING was.fault
"""
SLOW_S = (20, 90)
DECLINE_REASON, DECLINE_CODE = "The payment card has insufficient funds.", "insufficient_funds"
WITHDRAWN_MESSAGE = "It was cancelled before it was charged."
NOT_LEFT_MESSAGE = "The amount exceeds the rest of the charge."


class GatewayFault(StrEnum):
    NONE = "none"
    DECLINED = "declined"
    LOST = "lost"  # the charge succeeds but the answer is lost
    UNREACHABLE = "unreachable"
    SLOW = "slow"
    REJECTED = "rejected"  # as with invalid credentials: nothing happens, now or later


class SimulatedGateway:
    """A gateway that moves no money and reports success."""

    name = "simulated"

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        ill = _take_fault_or_raise(charge.payer)
        return _charge_outcome(_create_charge(charge, ill, now), charge, ill, now)

    def withdraw(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        ill = _take_fault_or_raise(charge.payer)
        outcome = _charge_outcome(_create_charge(charge, GatewayFault.DECLINED, now), charge, ill, now)
        return Declined(WITHDRAWN_MESSAGE, "withdrawn") if isinstance(outcome, Declined) else outcome

    def refund(self, back: GatewayRefund, *, now: datetime) -> GatewayOutcome:
        ill = _take_fault_or_raise(back.payer)
        if ill is GatewayFault.DECLINED:
            return Declined("The bank rejected the refund.", "not_taken_back")
        values = {"key": back.key, "charge": back.charge, "minor": back.minor, "currency": back.currency}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LOCK_CHARGE, [back.charge])
            made = list(SimulatedRefund.objects.raw(CREATE_REFUND, {**values, "now": now}))
        if ill is GatewayFault.LOST:
            raise OutcomeUnknown("the simulated gateway's answer was lost")
        if not made:
            return Declined(NOT_LEFT_MESSAGE, "amount_too_large")
        if (made[0].charge_id, made[0].minor) != (back.charge, back.minor):
            raise ChargeKeyTaken(f"The key {back.key} belongs to another refund.")
        return Succeeded(f"simre_{back.key.rpartition('_')[2]}")


def _take_fault_or_raise(payer: str) -> GatewayFault:
    """Return the fault of a call that reaches the gateway, or raise."""
    ill = _take_fault(payer)
    if ill is GatewayFault.UNREACHABLE:
        raise GatewayUnreachable("the simulated gateway cannot be reached")
    if ill is GatewayFault.REJECTED:
        raise GatewayRejected("The simulated gateway does not accept our credentials.", code="bad_credentials")
    return ill


def _charge_outcome(made: SimulatedCharge, charge: GatewayCharge, ill: GatewayFault, now: datetime) -> GatewayOutcome:
    """Return the outcome of a charge, as changed by its fault."""
    if (made.payer, made.minor, made.currency) != (charge.payer, charge.minor, charge.currency):
        raise ChargeKeyTaken(f"The key {charge.key} belongs to a charge of {made.minor} {made.currency}.")
    if ill is GatewayFault.LOST:
        raise OutcomeUnknown("the simulated gateway's answer was lost")
    if made.answers_at > now:
        left = made.answers_at - now
        raise OutcomeUnknown("the simulated gateway is still processing", again_in_s=-(-left // timedelta(seconds=1)))
    if made.declined:
        return Declined(DECLINE_REASON, DECLINE_CODE)
    return Succeeded(f"sim_{charge.key.rpartition('_')[2]}")


def _take_fault(payer: str) -> GatewayFault:
    with connection.cursor() as cursor:
        cursor.execute(TAKE_FAULT, [payer])
        found = cursor.fetchone()
    return GatewayFault(found[0]) if found else GatewayFault.NONE


def _create_charge(charge: GatewayCharge, ill: GatewayFault, now: datetime) -> SimulatedCharge:
    dawdles_s = int(Rng(charge.key).uniform(*SLOW_S)) if ill is GatewayFault.SLOW else 0
    values = {
        "key": charge.key,
        "payer": charge.payer,
        "minor": charge.minor,
        "currency": charge.currency,
        "text": charge.text,
        "declined": ill is GatewayFault.DECLINED,
        "made_at": now,
        "answers_at": now + timedelta(seconds=dawdles_s),
    }
    (made,) = SimulatedCharge.objects.raw(CREATE_CHARGE, values)
    return made
