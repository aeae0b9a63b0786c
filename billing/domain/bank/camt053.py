"""CAMT.053 bank statements (ISO 20022) as banks send them, versions 02 to 13.

Only local names are compared: versions differ in namespace, in `Sts` (text or `Sts/Cd`) and in parties
(`Dbtr/Nm` or `Dbtr/Pty/Nm`). A batch booking is split where its details add up to it.
"""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from billing.domain.bank.entries import InvalidStatement, StatementEntry, clean_words, number_equal_entries
from billing.domain.money import EXPONENTS, MAX_MINOR

NAMESPACE = re.compile(r"urn:iso:std:iso:20022:tech:xsd:camt\.(?P<message>[0-9]{3})\.001\.(?P<version>[0-9]{2})")
VERSIONS = range(2, 14)
MAX_DEPTH = 40
UNKNOWN_REFERENCES = frozenset({"", "NOTPROVIDED", "NOT PROVIDED", "NONREF"})
SEPARATOR = "\n"  # between namespace and local name; neither contains it


def parse_camt053(content: bytes) -> list[StatementEntry]:
    """Return the booked entries of all statements in a file, or raise InvalidStatement."""
    root = _parse_xml(content)
    statements = [each for message in root.findall("BkToCstmrStmt") for each in message.findall("Stmt")]
    if not statements:
        raise InvalidStatement("The file has no account statement (BkToCstmrStmt/Stmt).")
    return number_equal_entries(
        entry
        for statement in statements
        for booked in statement.findall("Ntry")
        for entry in _entries(statement, booked)
    )


def _parse_xml(content: bytes) -> Element:
    """Parse XML without document types, whose entities could grow or read files."""
    builder, namespaces, depth = TreeBuilder(), list[str](), 0
    parser = expat.ParserCreate(namespace_separator=SEPARATOR)

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidStatement("The file is nested too deeply for a bank statement.")
        namespace, _, local = name.rpartition(SEPARATOR)
        if not namespaces:
            namespaces.append(namespace)
        builder.start(local, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name.rpartition(SEPARATOR)[2])

    def refuse_document_type(*_: object) -> None:
        raise InvalidStatement("The file has a document type (DOCTYPE), which no bank statement has.")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse_document_type
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InvalidStatement(f"The file is not XML: {expat.ErrorString(error.code)}, line {error.lineno}.") from error
    _check_message(namespaces[0])
    return builder.close()


def _check_message(namespace: str) -> None:
    found = NAMESPACE.fullmatch(namespace)
    if found is None:
        raise InvalidStatement(f"The file is not an ISO 20022 account statement; its namespace is {namespace[:80]!r}.")
    if found["message"] != "053":
        raise InvalidStatement(
            f"The file is camt.{found['message']}; only final statements, camt.053, say what was booked."
        )
    if int(found["version"]) not in VERSIONS:
        raise InvalidStatement(f"Version {found['version']} of camt.053 is not known.")


def _entries(statement: Element, booked: Element) -> Iterator[StatementEntry]:
    """Yield an entry's movements: its details if they add up to it, else itself."""
    if (_text(booked, "Sts/Cd") or _text(booked, "Sts")) != "BOOK":
        return  # pending or information only; a later statement books it
    details = [each for group in booked.findall("NtryDtls") for each in group.findall("TxDtls")]
    amount = booked.find("Amt")
    currency, total = _amount(amount)
    if total == 0:
        return
    if len(details) > 1:
        parts = [(each, _detail_amount(each, currency)) for each in details]
        signs = [1 if _direction(each, booked) == _direction(booked, booked) else -1 for each in details]
        if (
            all(minor for _, minor in parts)
            and sum(s * (m or 0) for s, (_, m) in zip(signs, parts, strict=True)) == total
        ):
            for each, minor in parts:
                yield _movement(statement, booked, each, currency, minor or 0)
            return
    yield _movement(statement, booked, details[0] if len(details) == 1 else None, currency, total)


def _movement(statement: Element, booked: Element, detail: Element | None, currency: str, minor: int) -> StatementEntry:
    """Return one movement; a batch without usable details has none of its own."""
    about = booked if detail is None else detail
    incoming = _direction(about, booked) == "CRDT"
    sides = ("Dbtr", "UltmtDbtr", "DbtrAcct") if incoming else ("Cdtr", "UltmtCdtr", "CdtrAcct")
    returned = _text(booked, "RvslInd") in ("true", "1") or about.find("RtrInf") is not None
    if returned and not incoming and not _party(about, sides[0]):
        sides = ("Dbtr", "UltmtDbtr", "DbtrAcct")  # of the payment that was returned
    structured = [each for strd in about.findall("RmtInf/Strd") for each in _structured(strd)]
    free = [each.text or "" for each in about.findall("RmtInf/Ustrd")]
    free += [each.text or "" for each in about.findall("RmtInf/Strd/AddtlRmtInf")]
    return StatementEntry(
        account=clean_words([_text(statement, "Acct/Id/IBAN") or _text(statement, "Acct/Id/Othr/Id")]),
        booked_on=_day(booked),
        minor=minor,
        currency=currency,
        incoming=incoming,
        returned=returned,
        counterparty=clean_words([_party(about, sides[0]) or _party(about, sides[1])]),
        counterparty_account=_text(about, f"RltdPties/{sides[2]}/Id/IBAN")
        or _text(about, f"RltdPties/{sides[2]}/Id/Othr/Id"),
        end_to_end_id=_known(_text(about, "Refs/EndToEndId")),
        bank_reference=_known(
            _text(about, "Refs/AcctSvcrRef") or _text(booked, "AcctSvcrRef") or _text(booked, "NtryRef")
        ),
        references=tuple(clean_words([each]) for each in structured if each),
        remittance=clean_words(free) or clean_words([_text(about, "AddtlTxInf"), _text(booked, "AddtlNtryInf")]),
    )


def _structured(strd: Element) -> list[str]:
    """Return a structured remittance's creditor reference and the numbers of documents it pays."""
    numbers = [each.text or "" for each in strd.findall("RfrdDocInf/Nb")]
    return [_text(strd, "CdtrRefInf/Ref"), *numbers]


def _party(about: Element, side: str) -> str:
    return _text(about, f"RltdPties/{side}/Pty/Nm") or _text(about, f"RltdPties/{side}/Nm")


def _direction(about: Element, booked: Element) -> str:
    return _text(about, "CdtDbtInd") or _text(booked, "CdtDbtInd")


def _detail_amount(detail: Element, currency: str) -> int | None:
    """Return a detail's amount in the account's currency, or None if it says none."""
    for path in ("Amt", "AmtDtls/TxAmt/Amt"):
        found = detail.find(path)
        if found is not None and found.get("Ccy") == currency:
            return _amount(found)[1]
    return None


def _amount(element: Element | None) -> tuple[str, int]:
    text, currency = (element.text or "", element.get("Ccy") or "") if element is not None else ("", "")
    if currency not in EXPONENTS:
        raise InvalidStatement(f"An entry is in {currency[:10]!r}, which is not a supported currency.")
    try:
        scaled = Decimal(text.strip()).scaleb(EXPONENTS[currency])
        whole = int(scaled) if scaled.is_finite() and abs(scaled) <= MAX_MINOR else -1
    except InvalidOperation:
        scaled, whole = Decimal(0), -1
    if whole < 0 or scaled != whole:
        raise InvalidStatement(f"{text.strip()[:40]!r} is not an amount in {currency}.")
    return currency, whole


def _day(booked: Element) -> date:
    """Return the day of booking, else that of value."""
    for path in ("BookgDt/Dt", "BookgDt/DtTm", "ValDt/Dt", "ValDt/DtTm"):
        if text := _text(booked, path):
            try:
                return date.fromisoformat(text[:10])
            except ValueError as error:
                raise InvalidStatement(f"{text[:40]!r} is not a date.") from error
    raise InvalidStatement("An entry has no date of booking.")


def _known(reference: str) -> str:
    return "" if reference.upper() in UNKNOWN_REFERENCES else reference[:140]


def _text(element: Element, path: str) -> str:
    found = element.find(path)
    return (found.text or "").strip() if found is not None else ""
