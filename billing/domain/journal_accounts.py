"""Default account numbers of the German charts SKR 03 and SKR 04.

A number of an account that computes tax by itself carries the key 40, which turns that off: the journal
books tax explicitly.
"""

from dataclasses import dataclass

NO_AUTOMATIC_TAX = "40"


@dataclass(frozen=True, slots=True)
class AccountNumber:
    """An account number of the accountant's chart, with a posting key (BU-Schlüssel)."""

    number: str
    key: str = ""


CHARTS: dict[str, dict[str, AccountNumber]] = {
    "skr03": {
        "receivable": AccountNumber("1410"),
        "bank": AccountNumber("1200"),
        "cash": AccountNumber("1360"),
        "wallet_paid": AccountNumber("1710"),
        "wallet_promo": AccountNumber("1700"),
        "revenue": AccountNumber("8200"),
        "revenue:domestic": AccountNumber("8400", NO_AUTOMATIC_TAX),
        "revenue:destination": AccountNumber("8331", NO_AUTOMATIC_TAX),
        "revenue:reverse_charge": AccountNumber("8336", NO_AUTOMATIC_TAX),
        "revenue:outside": AccountNumber("8338", NO_AUTOMATIC_TAX),
        "tax_payable": AccountNumber("1770"),
        "tax_payable:domestic": AccountNumber("1776"),
        "tax_payable:destination": AccountNumber("1768"),
        "slo_expense": AccountNumber("8700"),
        "promotion": AccountNumber("4600"),
        "breakage": AccountNumber("2700"),
        "bad_debt": AccountNumber("2400"),
        "fx": AccountNumber("2150"),
    },
    "skr04": {
        "receivable": AccountNumber("1210"),
        "bank": AccountNumber("1800"),
        "cash": AccountNumber("1460"),
        "wallet_paid": AccountNumber("3250"),
        "wallet_promo": AccountNumber("3500"),
        "revenue": AccountNumber("4200"),
        "revenue:domestic": AccountNumber("4400", NO_AUTOMATIC_TAX),
        "revenue:destination": AccountNumber("4331", NO_AUTOMATIC_TAX),
        "revenue:reverse_charge": AccountNumber("4336", NO_AUTOMATIC_TAX),
        "revenue:outside": AccountNumber("4338", NO_AUTOMATIC_TAX),
        "tax_payable": AccountNumber("3800"),
        "tax_payable:domestic": AccountNumber("3806"),
        "tax_payable:destination": AccountNumber("3818"),
        "slo_expense": AccountNumber("4700"),
        "promotion": AccountNumber("6600"),
        "breakage": AccountNumber("4830"),
        "bad_debt": AccountNumber("6930"),
        "fx": AccountNumber("6880"),
    },
}
