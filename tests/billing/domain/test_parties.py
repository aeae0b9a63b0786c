"""VAT numbers by form and check digits, and postal addresses."""

import pytest

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.parties import InvalidVatNumber, InvoiceParty, normalize_vat_number
from billing.domain.tax import EU_MEMBERS


@pytest.mark.parametrize(
    ("country", "typed", "kept"),
    [
        ("DE", "DE 136 695 976", "DE136695976"),
        ("AT", "atu13585627", "ATU13585627"),
        ("GR", "EL 094259216", "EL094259216"),
        ("GB", "GB 980 7806 84", "GB980780684"),
        ("GB", "980 7806 84", "980780684"),
        ("CH", "CHE-107.787.577 MWST", "CHE107787577MWST"),
        ("US", "12-3456789", "123456789"),
    ],
)
def test_a_vat_number_is_normalized_to_capitals_without_separators(country: str, typed: str, kept: str) -> None:
    assert normalize_vat_number(typed, country) == kept


@pytest.mark.parametrize(
    ("country", "typed", "why"),
    [
        ("DE", "DE136695975", "not a valid VAT number for Germany"),
        ("DE", "DE12", "not a valid VAT number for Germany"),
        ("DE", "FR40303265045", "begins with DE"),
        ("GR", "GR094259216", "begins with EL"),
        ("GB", "GB980780685", "not a valid tax number for United Kingdom"),
        ("US", "12'; --", "letters and digits"),
        ("US", "123", "4 to 20"),
        ("US", "1" * 21, "4 to 20"),
        ("DE", "DE１３６６９５９７６", "letters and digits"),
    ],
)
def test_a_vat_number_impossible_in_its_country_is_refused_with_a_reason(country: str, typed: str, why: str) -> None:
    with pytest.raises(InvalidVatNumber, match=why):
        normalize_vat_number(typed, country)


def test_every_eu_member_state_has_vat_number_rules() -> None:
    assert set(COUNTRY_NAMES) > EU_MEMBERS
    assert len(EU_MEMBERS) == 27
    assert len(COUNTRY_NAMES) == 249
    for country in EU_MEMBERS:
        with pytest.raises(InvalidVatNumber):
            normalize_vat_number("EL00000" if country == "GR" else f"{country}00000", country)


def test_an_address_omits_empty_fields() -> None:
    assert InvoiceParty("Lumen", "Gasse 1", "", "", "Wien", "AT").address == ["Gasse 1", "Wien", "Austria"]
    assert InvoiceParty("Lumen", "Gasse 1", "Hof", "1010", "Wien", "AT").address == [
        "Gasse 1",
        "Hof",
        "1010 Wien",
        "Austria",
    ]
