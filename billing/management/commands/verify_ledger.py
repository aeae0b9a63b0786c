"""`manage.py verify_ledger`: check that the ledger is consistent and unchanged."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.domain.money import format_minor
from billing.services.ledger import ledger_balances, ledger_seal
from ports import clock
from tenants.services.rls import staff_scope

SHOWN = 20


class Command(BaseCommand):
    help = "Recompute all balances from the transfers and verify the hash chains; exits with status 1 on any error."

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        with staff_scope():
            totals, drifts = ledger_balances.recomputed_trial_balance()
            uncleared, missing = ledger_balances.uncleared_invoices(), ledger_balances.missing_events()
            verification = ledger_seal.verify_seals(now=now)
        for each in totals:
            sides = format_minor(each.debit, each.currency), format_minor(each.credit, each.currency)
            self._say(f"trial balance {each.currency}", f"debit {sides[0]}, credit {sides[1]}")
        wrong = [f"{each.currency}: debits and credits differ" for each in totals if not each.balanced]
        wrong += [str(drift) for drift in drifts]
        wrong += [f"{ref}: the accrued account is not cleared" for ref in uncleared]
        wrong += [f"{subject} of {tenant} was {what} and has no transfer" for tenant, what, subject in missing]
        wrong += verification.wrong
        self._say("accounts with a wrong balance", str(len(drifts)))
        self._say("invoices not cleared", str(len(uncleared)))
        self._say("events without a transfer", str(len(missing)))
        self._say(
            "chains", f"{verification.tenants}, {verification.seals} seals over {verification.transfers} transfers"
        )
        self._say("transfers not sealed yet", str(verification.unsealed))
        self._say("hash over all chains", verification.head)
        if wrong:
            listed = "\n".join(f"  {each}" for each in wrong[:SHOWN])
            more = f"\n  and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
            raise CommandError(f"The ledger has {len(wrong)} errors:\n{listed}{more}")
        self.stdout.write("The ledger is consistent.")

    def _say(self, what: str, found: str) -> None:
        self.stdout.write(f"{what:30} {found}")
