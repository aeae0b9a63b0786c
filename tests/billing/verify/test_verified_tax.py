"""Tax recomputed by the independent verifier."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from billing.models import Invoice
from billing.services.documents import invoice_bundles
from billing.verify.verify import Unreadable, check, report_lines, shared
from tenants.services.rls import tenant_scope
from tests.billing.tax.tax_split import split_tax, tax_of
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, create_october_invoice, set_tax_rate
from tests.billing.verify.written_bundles import Document, sample_bundle, write_bundle


def taxed_bundle() -> Document:
    """Return the sample bundle with 19 % on its one line of 2.23."""
    document = sample_bundle()
    document["version"] = 2
    document["invoice"].update(total=265, tax=42, treatment="domestic")
    document["lines"][0].update(tax_category="standard", tax=42)
    document["taxes"] = [{"category": "standard", "rate_bp": 1900, "net": 223, "tax": 42}]
    return document


def differences_after(change: Callable[[Document], Any]) -> list[str]:
    document = taxed_bundle()
    change(document)
    return check(write_bundle(document)).differences


def test_the_tax_of_a_taxed_bundle_is_recomputed() -> None:
    report = check(write_bundle(taxed_bundle()))
    assert report.differences == []
    assert report.total == 265
    assert "  tax          0.42 EUR in the total, domestic" in report_lines(report)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["invoice"].update(tax=41), "the tax: the invoice says 0.41 EUR, recomputed is 0.42 EUR"),
        (lambda d: d["invoice"].update(total=223), "the total: the invoice says 2.23 EUR, recomputed is 2.65 EUR"),
        (lambda d: d["taxes"][0].update(rate_bp=700),
         "tax, standard, at 7 %: the invoice says 0.42 EUR, recomputed is 0.16 EUR"),
        (lambda d: d["taxes"][0].update(net=222),
         "tax, standard, tax base: the invoice says 2.22 EUR, recomputed is 2.23 EUR"),
        (lambda d: d["taxes"][0].update(rate_bp=None), "tax, standard: the rate does not match the tax treatment"),
        (lambda d: d["taxes"][0].update(rate_bp=10_001), "tax, standard: the rate does not match the tax treatment"),
        (lambda d: d["taxes"].clear(), "the tax: the categories do not match those of the lines"),
        (lambda d: d["taxes"].append(d["taxes"][0]), "the tax: the categories do not match those of the lines"),
        (lambda d: d["lines"][0].update(tax=41), "line 1, tax: the invoice says 0.41 EUR, recomputed is 0.42 EUR"),
    ],
)  # fmt: skip
def test_each_wrong_tax_figure_is_reported(change: Callable[[Document], Any], words: str) -> None:
    assert words in differences_after(change)


def test_a_draft_with_an_unknown_tax_rate_verifies() -> None:
    document = taxed_bundle()
    document["invoice"].update(number=None, total=223, tax=0)
    document["lines"][0].update(tax=0)
    document["taxes"][0].update(rate_bp=None, tax=0)
    assert check(write_bundle(document)).differences == []


def test_version_1_bundles_have_no_tax_and_taxed_ones_need_version_2() -> None:
    assert check(write_bundle(sample_bundle())).differences == []
    for change in ({"version": 1}, {"version": True}):
        with pytest.raises(Unreadable):
            check(write_bundle(taxed_bundle() | change))


@given(some.lists(some.integers(-(10**9), 10**9), max_size=20), some.integers(0, 10_000))
def test_verifier_and_product_split_tax_alike(amounts: list[int], rate: int) -> None:
    assert shared(amounts, rate, tax_of(sum(amounts), rate)) == split_tax(amounts, rate)


def build_bundle(invoice: Invoice) -> bytes:
    with tenant_scope(invoice.tenant_id):
        return b"".join(invoice_bundles.build_bundle(invoice))


@pytest.mark.django_db
def test_bundles_of_taxed_and_untaxed_invoices_have_their_version_and_verify(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    chance = random.Random(11)
    for party in (None, ATELIER):
        cents = [chance.choice([1, 2, 33, 105, 9_999]) for _ in range(7)]
        raw = build_bundle(create_october_invoice(*cents, party=party))
        report = check(raw)
        assert report.differences == []
        assert json.loads(raw)["version"] == 2
        assert report.total == sum(cents) + (tax_of(sum(cents), 1900) if party is None else 0)
    settings.SUPPLIER = {**LUMEN.as_dict(), "name": ""}
    plain = json.loads(build_bundle(create_october_invoice(105)))
    assert plain["version"] == 1
    assert "taxes" not in plain
