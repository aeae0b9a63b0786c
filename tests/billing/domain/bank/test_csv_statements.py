"""CSV statements with the heads and number formats of different banks."""

from datetime import date

import pytest

from billing.domain.bank.csv_statements import parse_csv_statement
from billing.domain.bank.entries import InvalidStatement

SPARKASSE = (
    '"Auftragskonto";"Buchungstag";"Valutadatum";"Buchungstext";"Verwendungszweck";"Glaeubiger ID";"Mandatsreferenz";'
    '"Kundenreferenz (End-to-End)";"Beguenstigter/Zahlungspflichtiger";"Kontonummer/IBAN";"Betrag";"Waehrung";'
    '"Info"\r\n'
    '"DE02";"05.11.26";"05.11.26";"GUTSCHRIFT";"RE 2026-10-1";"";"";"E2E";"Müller GmbH";"DE11 22";"1.234,56";'
    '"EUR";"Umsatz gebucht"\r\n'
    '"DE02";"06.11.26";"06.11.26";"KARTE";"";"";"";"";"";"";"-12,30";"EUR";"Umsatz vorgemerkt"\r\n'
)
DKB = (
    '"Girokonto";"DE00"\n""\n"Buchungsdatum";"Wertstellung";"Status";"Zahlungspflichtige*r";"Zahlungsempfänger*in";'
    '"Verwendungszweck";"Umsatztyp";"IBAN";"Betrag (€)"\n'
    '"07.11.26";"07.11.26";"Gebucht";"Kestrel";"Us";"2026-10-0001";"Eingang";"DE33";"255,00 €"\n'
)
VOLKSBANK = (
    '"Buchungstag";"Valuta";"Auftraggeber/Zahlungsempfänger";"IBAN";"Vorgang/Verwendungszweck";"Währung";"Umsatz";" "\n'
    '"03.11.2026";"03.11.2026";"Us";"DE44";"Rent";"EUR";"112,40";"S"\n'
)
PLAIN = "date,amount,currency,payer,remittance\n2026-11-05,1234.50,EUR,Kestrel,2026-10-0001\n2026-11-06,-3,EUR,,\n"


def test_savings_bank_file_in_windows_encoding() -> None:
    (entry,) = parse_csv_statement(SPARKASSE.encode("cp1252"))
    assert (entry.minor, entry.booked_on, entry.incoming) == (123456, date(2026, 11, 5), True)
    assert (entry.counterparty, entry.counterparty_account, entry.account) == ("Müller GmbH", "DE1122", "DE02")
    assert (entry.remittance, entry.end_to_end_id) == ("RE 2026-10-1", "E2E")


def test_lines_before_the_table_and_currency_in_its_head() -> None:
    (entry,) = parse_csv_statement(DKB.encode(), account="DE00")
    assert (entry.minor, entry.currency, entry.counterparty, entry.account) == (25500, "EUR", "Kestrel", "DE00")


def test_sign_in_a_column_without_a_name() -> None:
    (entry,) = parse_csv_statement(VOLKSBANK.encode())
    assert (entry.minor, entry.incoming) == (11240, False)


def test_plain_table_with_points_and_commas() -> None:
    first, second = parse_csv_statement(PLAIN.encode())
    assert (first.minor, first.incoming, second.minor, second.incoming) == (123450, True, 300, False)


@pytest.mark.parametrize(
    ("text", "minor"),
    [("1.234,56", 123456), ("1,234.56", 123456), ("1.234", 123400), ("12,5", 1250), ("1'000.00", 100000), ("5-", 500)],
)
def test_amounts_of_all_spellings(text: str, minor: int) -> None:
    (entry,) = parse_csv_statement(f"date;amount;currency\n2026-11-05;{text};EUR\n".encode())
    assert entry.minor == minor


@pytest.mark.parametrize(
    "text",
    ["", "one line", "a;b\n1;2\n", "date;amount\n2026-11-05;1\n", "date;amount;currency\nyesterday;1;EUR\n",
     "date;amount;currency\n2026-11-05;1.005,001;EUR\n", "date;amount;currency\n2026-11-05;x;EUR\n", "date;\0"],
)  # fmt: skip
def test_other_tables_are_refused(text: str) -> None:
    with pytest.raises(InvalidStatement):
        parse_csv_statement(text.encode())
