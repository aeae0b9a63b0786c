"""`manage.py verify_ledger`: whether the books agree with themselves, and whether anybody changed them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.domain.money import shown
from billing.services.ledger import books, sealing
from ports import clock
from tenants.services.walls import as_staff

SHOWN = 20


class Command(BaseCommand):
    help = "Add up every transfer, compare balances, walk along the chain of seals; ends with 1 if any of it is wrong."

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        with as_staff():
            totals, drifts = books.reckoned()
            uncleared, missing = books.uncleared(), books.missing()
            verdict = sealing.verify(now=now)
        for each in totals:
            sides = shown(each.debit, each.currency), shown(each.credit, each.currency)
            self._say(f"trial balance {each.currency}", f"debit {sides[0]}, credit {sides[1]}")
        wrong = [f"{each.currency}: debits are not credits" for each in totals if not each.balanced]
        wrong += [str(drift) for drift in drifts]
        wrong += [f"{ref}: something is left on accrued" for ref in uncleared]
        wrong += [
            f"{subject} of {tenant} was {what} and is not in the books" for tenant, what, subject in missing
        ]
        wrong += verdict.wrong
        self._say("accounts off their transfers", str(len(drifts)))
        self._say("invoices not cleared", str(len(uncleared)))
        self._say("not in the books", str(len(missing)))
        self._say("chains", f"{verdict.tenants}, {verdict.seals} seals over {verdict.transfers} transfers")
        self._say("not sealed yet", str(verdict.unsealed))
        self._say("head of all chains", verdict.head)
        if wrong:
            listed = "\n".join(f"  {each}" for each in wrong[:SHOWN])
            more = f"\n  and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
            raise CommandError(f"The ledger is wrong in {len(wrong)} places:\n{listed}{more}")
        self.stdout.write("The ledger is whole.")

    def _say(self, what: str, found: str) -> None:
        self.stdout.write(f"{what:30} {found}")
