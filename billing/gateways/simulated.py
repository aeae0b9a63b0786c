"""A gateway that only simulates, with a real one's manners: it keeps books, declines, dawdles, and falls silent.

Its books are tables of their own, so that several workers see one gateway and a crash of ours changes nothing in
them. What goes wrong comes on request: `suffer` says what the next attempts to charge a payer will meet.
How long a slow one takes is drawn from its key, so that the same charge always takes as long.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from django.db import connection, transaction
from django.db.backends.postgresql.psycopg_any import Jsonb

from billing.models import SimulatedCharge, SimulatedRefund
from ports.chance import Chance
from ports.payments import (
    Charge,
    Declined,
    KeyTaken,
    Outcome,
    Rejected,
    SendBack,
    Succeeded,
    Unanswered,
    Unreachable,
)

# Makes the charge or returns the one that is there, in one statement: there is no moment between.
MAKE = """
INSERT INTO billing_simulatedcharge (key, payer, minor, currency, text, declined, made_at, answers_at)
VALUES (%(key)s, %(payer)s, %(minor)s, %(currency)s, %(text)s, %(declined)s, %(made_at)s, %(answers_at)s)
ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING *
"""
# Whoever waits for it sees in its next statement what was sent back meanwhile; within one it would not.
KEEP = "SELECT 1 FROM billing_simulatedcharge WHERE key = %s FOR UPDATE"
# Sends back what is left of a charge that is kept, or returns what was sent back under this key.
SEND_BACK = """
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
# Takes the first ill off the payer's list.
NEXT_ILL = """
WITH was AS (
  SELECT payer, ills->>0 AS ill FROM billing_simulatedpayer
  WHERE payer = %s AND jsonb_array_length(ills) > 0 FOR UPDATE
)
UPDATE billing_simulatedpayer p SET ills = p.ills - 0 FROM was WHERE p.payer = was.payer RETURNING was.ill
"""
SUFFER = """
INSERT INTO billing_simulatedpayer (payer, ills) VALUES (%s, %s)
ON CONFLICT (payer) DO UPDATE SET ills = excluded.ills
"""
SLOW_S = (20, 90)
REASON, CODE = "The card has not enough money on it.", "insufficient_funds"
WITHDRAWN = "It was withdrawn before anything was taken."
NOT_LEFT = "So much is not left of what was taken."


class Ill(StrEnum):
    NONE = "none"
    DECLINED = "declined"
    LOST = "lost"  # the charge goes through, the answer does not
    UNREACHABLE = "unreachable"
    SLOW = "slow"
    REJECTED = "rejected"  # as with credentials that no longer hold: nothing happens, now or later


def suffer(payer: str, *ills: Ill) -> None:
    """Say what the next attempts to charge a payer will meet, in this order; none is health again."""
    with connection.cursor() as cursor:
        cursor.execute(SUFFER, [payer, Jsonb([ill.value for ill in ills])])


class SimulatedGateway:
    """Takes nobody's money and says that it did."""

    name = "simulated"

    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        ill = _reached(charge.payer)
        return _answer(_made(charge, ill, now), charge, ill, now)

    def withdraw(self, charge: Charge, *, now: datetime) -> Outcome:
        ill = _reached(charge.payer)
        outcome = _answer(_made(charge, Ill.DECLINED, now), charge, ill, now)
        return Declined(WITHDRAWN, "withdrawn") if isinstance(outcome, Declined) else outcome

    def refund(self, back: SendBack, *, now: datetime) -> Outcome:
        ill = _reached(back.payer)
        if ill is Ill.DECLINED:
            return Declined("The bank does not take it back.", "not_taken_back")
        asked = {"key": back.key, "charge": back.charge, "minor": back.minor, "currency": back.currency}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(KEEP, [back.charge])
            made = list(SimulatedRefund.objects.raw(SEND_BACK, {**asked, "now": now}))
        if ill is Ill.LOST:
            raise Unanswered("the simulated gateway's answer was lost")
        if not made:
            return Declined(NOT_LEFT, "amount_too_large")
        if (made[0].charge_id, made[0].minor) != (back.charge, back.minor):
            raise KeyTaken(f"The key {back.key} stands for another refund.")
        return Succeeded(f"simre_{back.key.rpartition('_')[2]}")


def _reached(payer: str) -> Ill:
    """Return what befalls an attempt that reaches the gateway."""
    ill = _next_ill(payer)
    if ill is Ill.UNREACHABLE:
        raise Unreachable("the simulated gateway cannot be reached")
    if ill is Ill.REJECTED:
        raise Rejected("The simulated gateway does not accept our credentials.", code="bad_credentials")
    return ill


def _answer(made: SimulatedCharge, charge: Charge, ill: Ill, now: datetime) -> Outcome:
    """Say what became of a charge, in the way of its ill."""
    if (made.payer, made.minor, made.currency) != (charge.payer, charge.minor, charge.currency):
        raise KeyTaken(f"The key {charge.key} stands for a charge of {made.minor} {made.currency}.")
    if ill is Ill.LOST:
        raise Unanswered("the simulated gateway's answer was lost")
    if made.answers_at > now:
        left = made.answers_at - now
        raise Unanswered("the simulated gateway is not done yet", again_in_s=-(-left // timedelta(seconds=1)))
    if made.declined:
        return Declined(REASON, CODE)
    return Succeeded(f"sim_{charge.key.rpartition('_')[2]}")


def _next_ill(payer: str) -> Ill:
    with connection.cursor() as cursor:
        cursor.execute(NEXT_ILL, [payer])
        found = cursor.fetchone()
    return Ill(found[0]) if found else Ill.NONE


def _made(charge: Charge, ill: Ill, now: datetime) -> SimulatedCharge:
    dawdles_s = int(Chance(charge.key).uniform(*SLOW_S)) if ill is Ill.SLOW else 0
    asked = {
        "key": charge.key,
        "payer": charge.payer,
        "minor": charge.minor,
        "currency": charge.currency,
        "text": charge.text,
        "declined": ill is Ill.DECLINED,
        "made_at": now,
        "answers_at": now + timedelta(seconds=dawdles_s),
    }
    (made,) = SimulatedCharge.objects.raw(MAKE, asked)
    return made
