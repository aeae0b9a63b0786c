"""Proposals for statement entries: by number, account, amount and name."""

import pytest

from billing.domain.bank.matching import InvoiceIndex, MatchBasis, MatchedEntry, OpenInvoice, match_entry

FIRST = OpenInvoice("inv_1", "2026-10-0001", "ten_a", ("Kestrel Bio", "Kestrel Bio GmbH"), "EUR", 200)
SECOND = OpenInvoice("inv_2", "2026-11-0012", "ten_a", ("Kestrel Bio", "Kestrel Bio GmbH"), "EUR", 300)
OTHER = OpenInvoice("inv_3", "2026-10-0002", "ten_b", ("Müller & Söhne AG",), "EUR", 300)


def match(words: str = "", *, minor: int = 1, payer: str = "", account: str = "") -> MatchedEntry | None:
    return match_entry(
        InvoiceIndex([FIRST, SECOND, OTHER]),
        minor=minor,
        currency="EUR",
        words=words,
        payer=payer,
        payer_account=account,
        known_accounts={"DE1": "ten_b"},
    )


@pytest.mark.parametrize(
    "words",
    [
        "Invoice 2026-10-0001",
        "RE 2026-10-1",
        "2026/10/0001",
        "2026 10 0001",
        "20261 00001",
        "RG2026-10-00 01 EUR",
        "inv_1",
    ],
)
def test_transfer_that_names_its_number_matches(words: str) -> None:
    found = match(words, minor=200)
    assert found is not None
    assert (found.invoices, found.basis, found.exact) == ((FIRST,), MatchBasis.REFERENCE, True)


def test_other_amount_than_due_is_no_exact_match() -> None:
    found = match("2026-10-0001", minor=199)
    assert found is not None
    assert (found.basis, found.exact) == (MatchBasis.REFERENCE_ONLY, False)


def test_several_invoices_of_one_tenant_are_paid_together() -> None:
    found = match("2026-11-0012 and 2026-10-0001", minor=500)
    assert found is not None
    assert (found.invoices, found.exact) == ((SECOND, FIRST), True)
    mixed = match("2026-10-0001 2026-10-0002", minor=500)
    assert mixed is not None
    assert not mixed.exact


def test_longer_numbers_do_not_match() -> None:
    assert match("12026-10-00011", minor=7) is None
    assert match("2026-10-00010", minor=7) is None


def test_known_account_names_the_tenant() -> None:
    found = match("thanks", minor=300, account="DE1")
    assert found is not None
    assert (found.tenant_id, found.invoices, found.basis) == ("ten_b", (OTHER,), MatchBasis.ACCOUNT)


def test_amount_and_name_decide_between_equal_amounts() -> None:
    found = match(minor=300, payer="MUELLER UND SOEHNE")
    assert found is not None
    assert (found.invoices, found.basis) == ((OTHER,), MatchBasis.AMOUNT_AND_NAME)
    assert match(minor=300) is None  # two invoices of this amount, and no name


def test_amount_or_name_alone_is_a_weaker_proposal() -> None:
    by_amount, by_name = match(minor=200, payer="Nobody"), match(minor=999, payer="Kestrel Bio Limited")
    assert by_amount is not None
    assert by_name is not None
    assert (by_amount.basis, by_name.basis) == (MatchBasis.AMOUNT, MatchBasis.NAME)
    assert by_name.invoices == (FIRST, SECOND)
    assert match(minor=999, payer="GmbH") is None
