"""Check that credit notes in any parts and order return exactly what was charged.

Usage: `python -m bench.billing_credits`. 100,000 random invoices with their tax, by arithmetic alone; a
hundred through PostgreSQL, where notes are booked.
"""

import os
import random
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from bench.figures import Figures  # noqa: E402
from billing.domain.credit_notes import CreditTooLarge, LineCreditLimit, check_credit  # noqa: E402
from billing.models import CreditNote, Invoice  # noqa: E402
from billing.services.invoicing import credit_notes  # noqa: E402
from billing.services.ledger import ledger_balances  # noqa: E402
from tenants.services.rls import staff_scope, tenant_scope  # noqa: E402
from tests.billing.credit_notes.issued_notes import credited_amount, issue_note  # noqa: E402
from tests.billing.tax.tax_split import split_tax, tax_of  # noqa: E402
from tests.billing.tax.taxed_tenants import LUMEN, create_october_invoice, set_tax_rate  # noqa: E402

INVOICES, BOOKED, SEED = 100_000, 100, 20261123
RATES = (0, 700, 770, 1900, 2000, 2550, 2700)
MOST = (1, 2, 9, 100, 12_345, 99_999_999)


def given_back_in_parts(rng: random.Random) -> tuple[bool, int]:
    """Credit a random invoice in parts; return whether the sum is exact.

    The number of notes is returned with it.
    """
    rate = rng.choice(RATES)
    amounts = [rng.randrange(1 + rng.choice(MOST)) for _ in range(rng.randrange(1, 9))]
    taxes, credited, back, notes = split_tax(amounts, rate), [0] * len(amounts), [0] * len(amounts), 0
    while any(done < minor for done, minor in zip(credited, amounts, strict=True)):
        lines = [LineCreditLimit(n, *row) for n, row in enumerate(zip(amounts, credited, taxes, back, strict=True))]
        open_ = [line for line in lines if line.remaining]
        some = rng.sample(open_, rng.randrange(1, len(open_) + 1))
        limits = {line.n: line.remaining for line in some}
        wanted = {n: most if rng.random() < 0.4 else rng.randrange(1, most + 1) for n, most in limits.items()}
        check_credit(lines, wanted, "EUR")
        for line in some:
            back[line.n] += line.tax_with(wanted[line.n])
            credited[line.n] += wanted[line.n]
        notes += 1
        if any(done > whole for done, whole in zip(back, taxes, strict=True)):
            return False, notes
    exact = credited == amounts and sum(back) == sum(taxes) == tax_of(sum(amounts), rate)
    return exact and not _more_is_taken(amounts, taxes), notes


def _more_is_taken(amounts: list[int], taxes: list[int]) -> bool:
    """Return whether a fully credited invoice accepts one more minor unit."""
    spent = [
        LineCreditLimit(n, minor, minor, tax, tax) for n, (minor, tax) in enumerate(zip(amounts, taxes, strict=True))
    ]
    for line in spent:
        try:
            check_credit(spent, {line.n: 1}, "EUR")
        except CreditTooLarge:
            continue
        return True
    return False


def booked(rng: random.Random) -> bool:
    """Credit a real invoice in parts; return whether notes, lines and ledger agree on zero."""
    invoice = create_october_invoice(*[rng.randrange(1, 5000) for _ in range(rng.randrange(1, 5))], party=LUMEN)
    while True:
        with tenant_scope(invoice.tenant_id):
            lines = [line for line in credit_notes.creditable_lines(invoice) if line.remaining]
        if not lines:
            break
        some = rng.sample(lines, rng.randrange(1, len(lines) + 1))
        issue_note(
            invoice,
            {line.n: rng.randrange(1, line.remaining + 1) if line.remaining > 50 else line.remaining for line in some},
        )
    with tenant_scope(invoice.tenant_id):
        notes = list(CreditNote.objects.filter(invoice=invoice))
        now = Invoice.objects.get(pk=invoice.pk)
        owed = ledger_balances.amounts_owed(invoice.tenant_id)
    total, tax = sum(note.total for note in notes), sum(note.tax for note in notes)
    whole = (total, tax) == (invoice.total, invoice.tax) and credited_amount(invoice) == invoice.subtotal
    return whole and now.due == 0 and not owed


def main(invoices: int = INVOICES) -> None:
    figures, rng = Figures("billing_credits"), random.Random(SEED)
    wrong = notes = 0
    for _ in range(invoices):
        exact, took = given_back_in_parts(rng)
        wrong, notes = wrong + (not exact), notes + took
    set_tax_rate("DE", 19)
    unlike = sum(not booked(rng) for _ in range(BOOKED))
    with staff_scope():
        totals, drifts = ledger_balances.recomputed_trial_balance()
    figures.report_min("invoices_given_back", invoices, unit="1", at_least=invoices)
    figures.report_min("notes_that_took", notes, unit="1", at_least=3 * invoices)
    figures.report_max("not_exactly_total_and_tax", wrong, unit="1", at_most=0)
    figures.report_max(f"of_{BOOKED}_booked_not_exactly_nothing_left", unlike, unit="1", at_most=0)
    off = len(drifts) + sum(not each.balanced for each in totals)
    figures.report_max("accounts_and_currencies_off", off, unit="1", at_most=0)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
