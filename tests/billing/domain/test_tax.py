"""Tax treatment, and tax of lines, categories and credit notes."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from billing.domain.tax import TaxTreatment, credited_tax, tax_status
from tests.billing.tax.tax_split import split_tax, tax_of

AMOUNTS = some.lists(some.integers(-(10**9), 10**9), max_size=30)
RATES = some.integers(0, 10_000)


@pytest.mark.parametrize(
    ("supplier", "customer", "vat_id", "treatment", "jurisdiction"),
    [
        ("", "DE", "DE136695976", TaxTreatment.NOT_CONFIGURED, ""),
        ("DE", "DE", "", TaxTreatment.DOMESTIC, "DE"),
        ("DE", "DE", "DE136695976", TaxTreatment.DOMESTIC, "DE"),
        ("DE", "", "", TaxTreatment.DOMESTIC, "DE"),
        ("DE", "FR", "FR40303265045", TaxTreatment.REVERSE_CHARGE, ""),
        ("DE", "FR", "", TaxTreatment.DESTINATION, "FR"),
        ("DE", "GR", "", TaxTreatment.DESTINATION, "GR"),
        ("DE", "CH", "CHE107787577MWST", TaxTreatment.OUTSIDE, ""),
        ("DE", "GB", "", TaxTreatment.OUTSIDE, ""),
        ("CH", "DE", "DE136695976", TaxTreatment.OUTSIDE, ""),
        ("CH", "CH", "", TaxTreatment.DOMESTIC, "CH"),
    ],
)
def test_tax_treatment_follows_supplier_customer_and_vat_number(
    supplier: str, customer: str, vat_id: str, treatment: TaxTreatment, jurisdiction: str
) -> None:
    found = tax_status(supplier, customer, vat_id=vat_id)
    assert (found.treatment, found.jurisdiction) == (treatment, jurisdiction)


@given(AMOUNTS, RATES)
def test_b21_line_taxes_add_up_to_the_tax_of_their_category(amounts: list[int], rate: int) -> None:
    parts = split_tax(amounts, rate)
    assert sum(parts) == tax_of(sum(amounts), rate)
    for minor, part in zip(amounts, parts, strict=True):
        assert abs(part - Fraction(minor * rate, 10_000)) < 1


@given(some.integers(-(10**12), 10**12), RATES)
@example(1, 5000)  # exactly half a coin
def test_b20_tax_on_a_credit_mirrors_tax_on_the_charge(net: int, rate: int) -> None:
    assert tax_of(-net, rate) == -tax_of(net, rate)


@given(some.integers(1, 10**6), RATES, some.data())
def test_e7_partial_credits_in_any_order_return_the_whole_line_tax(
    minor: int, rate: int, draws: some.DataObject
) -> None:
    tax, credited, back = tax_of(minor, rate), 0, 0
    while credited < minor:
        step = draws.draw(some.integers(max(1, (minor - credited) // 5), minor - credited))
        part = credited_tax(tax, of=minor, credited=credited + step) - back
        assert part >= 0
        credited, back = credited + step, back + part
    assert back == tax


def test_a_zero_line_has_no_tax_to_credit() -> None:
    assert credited_tax(0, of=0, credited=0) == 0
