"""CAMT.053 statements in the versions and shapes that banks send."""

from datetime import date

import pytest

from billing.domain.bank.camt053 import parse_camt053
from billing.domain.bank.entries import InvalidStatement, StatementEntry

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.{message}.001.{v}">'
)
STATEMENT = "<Stmt><Id>1</Id><Acct><Id><IBAN>DE02120300000000202051</IBAN></Id></Acct>{entries}</Stmt>"
OLD = """<Ntry><Amt Ccy="EUR">119.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>
<BookgDt><Dt>2026-11-05</Dt></BookgDt><ValDt><Dt>2026-11-05</Dt></ValDt><AcctSvcrRef>REF1</AcctSvcrRef>
<NtryDtls><TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs>
<AmtDtls><TxAmt><Amt Ccy="EUR">119.00</Amt></TxAmt></AmtDtls>
<RltdPties><Dbtr><Nm>Kestrel  Bio GmbH</Nm></Dbtr><DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct>
<Cdtr><Nm>Us</Nm></Cdtr></RltdPties>
<RmtInf><Ustrd>Invoice 2026-10-</Ustrd><Ustrd>0001</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"""
NEW = """<Ntry><NtryRef>7</NtryRef><Amt Ccy="EUR">50</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
<BookgDt><DtTm>2026-11-06T08:00:00+01:00</DtTm></BookgDt>
<NtryDtls><TxDtls><Refs><EndToEndId>E2E-9</EndToEndId></Refs><Amt Ccy="EUR">50</Amt><CdtDbtInd>CRDT</CdtDbtInd>
<RltdPties><Dbtr><Pty><Nm>Petrel</Nm></Pty></Dbtr></RltdPties>
<RmtInf><Strd><RfrdDocInf><Nb>2026-10-0002</Nb></RfrdDocInf><CdtrRefInf><Ref>RF18539007547034</Ref></CdtrRefInf></Strd></RmtInf>
</TxDtls></NtryDtls></Ntry>"""
BATCH = """<Ntry><Amt Ccy="EUR">30.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
<BookgDt><Dt>2026-11-07</Dt></BookgDt><NtryDtls><Btch><NbOfTxs>2</NbOfTxs></Btch>
<TxDtls><Refs><EndToEndId>A</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="EUR">{first}</Amt></TxAmt></AmtDtls></TxDtls>
<TxDtls><Refs><EndToEndId>B</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="EUR">20.00</Amt></TxAmt></AmtDtls></TxDtls>
</NtryDtls></Ntry>"""
RETURNED = """<Ntry><Amt Ccy="EUR">119.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><RvslInd>true</RvslInd><Sts>BOOK</Sts>
<BookgDt><Dt>2026-11-09</Dt></BookgDt><NtryDtls><TxDtls><Refs><EndToEndId>E2E-1</EndToEndId></Refs>
<RltdPties><Cdtr><Nm>Kestrel Bio GmbH</Nm></Cdtr></RltdPties><RtrInf><Rsn><Cd>AC06</Cd></Rsn></RtrInf>
</TxDtls></NtryDtls></Ntry>"""
OUTGOING = """<Ntry><Amt Ccy="EUR">9.99</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>
<BookgDt><Dt>2026-11-09</Dt></BookgDt></Ntry>"""


def read(*statements: str, version: str = "02", message: str = "053") -> list[StatementEntry]:
    body = "".join(STATEMENT.format(entries=entries) for entries in statements)
    text = f"{HEAD.format(v=version, message=message)}<BkToCstmrStmt>{body}</BkToCstmrStmt></Document>"
    return parse_camt053(text.encode())


def test_version_02_names_payer_account_and_purpose() -> None:
    (entry,) = read(OLD)
    assert (entry.minor, entry.currency, entry.booked_on, entry.incoming) == (11900, "EUR", date(2026, 11, 5), True)
    assert (entry.counterparty, entry.counterparty_account) == ("Kestrel Bio GmbH", "DE89370400440532013000")
    assert entry.remittance == "Invoice 2026-10- 0001"
    assert (entry.end_to_end_id, entry.bank_reference, entry.account) == ("", "REF1", "DE02120300000000202051")


def test_version_08_has_nested_state_and_party() -> None:
    (entry,) = read(NEW, version="08")
    assert (entry.minor, entry.booked_on, entry.counterparty) == (5000, date(2026, 11, 6), "Petrel")
    assert (entry.end_to_end_id, entry.references) == ("E2E-9", ("RF18539007547034", "2026-10-0002"))


def test_statements_of_one_file_and_prefixed_namespaces_are_read() -> None:
    assert [entry.minor for entry in read(OLD, NEW)] == [11900, 5000]
    prefixed = (
        '<ns2:Document xmlns:ns2="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><ns2:BkToCstmrStmt><ns2:Stmt>'
        '<ns2:Ntry><ns2:Amt Ccy="EUR">1.00</ns2:Amt><ns2:CdtDbtInd>CRDT</ns2:CdtDbtInd><ns2:Sts>BOOK</ns2:Sts>'
        "<ns2:BookgDt><ns2:Dt>2026-11-05</ns2:Dt></ns2:BookgDt></ns2:Ntry></ns2:Stmt></ns2:BkToCstmrStmt></ns2:Document>"
    )
    assert [entry.minor for entry in parse_camt053(prefixed.encode())] == [100]


def test_batch_is_split_only_where_its_details_add_up() -> None:
    assert [(e.minor, e.end_to_end_id) for e in read(BATCH.format(first="10.00"))] == [(1000, "A"), (2000, "B")]
    assert [(e.minor, e.end_to_end_id) for e in read(BATCH.format(first="9.00"))] == [(3000, "")]


def test_detail_in_another_currency_takes_the_amount_of_its_entry() -> None:
    foreign = NEW.replace(
        '<Amt Ccy="EUR">50</Amt><CdtDbtInd>CRDT</CdtDbtInd>\n<RltdPties>', '<Amt Ccy="SEK">0</Amt><RltdPties>'
    )
    assert foreign != NEW
    assert [entry.minor for entry in read(foreign, version="08")] == [5000]


def test_returns_outgoing_and_pending_entries_are_told_apart() -> None:
    returned, outgoing = read(RETURNED + OUTGOING + OLD.replace("<Sts>BOOK", "<Sts>PDNG"))
    assert (returned.incoming, returned.returned, returned.counterparty) == (False, True, "Kestrel Bio GmbH")
    assert (outgoing.incoming, outgoing.returned) == (False, False)


def test_equal_entries_have_keys_of_their_own_and_the_same_again() -> None:
    first, second = read(OLD + OLD)
    assert first.key != second.key
    assert [entry.key for entry in read(OLD, OLD)] == [first.key, second.key]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<Document/>",
        b"not xml",
        b'<!DOCTYPE x [<!ENTITY a "b">]><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"/>',
        b'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt/></Document>',
        b'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02">' + b"<a>" * 100,
    ],
)
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidStatement):
        parse_camt053(content)


def test_interim_reports_and_impossible_amounts_are_refused() -> None:
    with pytest.raises(InvalidStatement, match=r"camt\.052"):
        read(OLD, message="052")
    for wrong in ("1.005", "-1", "1e400", "", "1,00"):
        with pytest.raises(InvalidStatement, match="is not an amount"):
            read(OLD.replace('<Amt Ccy="EUR">119.00</Amt><CdtDbtInd>', f'<Amt Ccy="EUR">{wrong}</Amt><CdtDbtInd>', 1))
