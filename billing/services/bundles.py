"""The bundle of an invoice: everything that it follows from, as JSON that a program of somebody else can check.

It holds facts alone: what each lease did and when, prices, months, and the invoice's lines; not one of our charges,
for whoever checks works them out anew. It names nobody and nothing, because names may change and an invoice does not:
a final one has the same bytes for ever. How it is read is told by `billing/verify/verify.py`.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db import connection

from billing.domain.money import exponent_of
from billing.domain.periods import month_of
from billing.models import (
    BillingPeriod,
    CorrectionPart,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    InvoiceTax,
    MonthCharge,
    PriceVersion,
    Quote,
)
from billing.models.charges import GIB_SECONDS
from billing.services.corrections import reading
from billing.services.month_charges import facts, reckoning
from billing.services.statements import statement
from billing.services.storage.sale import sold_since
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant

FORMAT = "gpubroker-invoice"
# The oldest that can say it: what is final has the same bytes for ever.
UNTAXED, TAXED, TERMS, MONTHLY, CORRECTED, VOLUMES, COMMITTED = range(1, 8)
AT_ONCE = 1000  # leases in one statement
TRIES = 3

Key = tuple[str, str, int]  # project, offering, price version: what makes a line
Part = dict[str, int | str]


class DraftMoves(Refused):
    code, status, title = "draft-moves", 409, "This draft is being brought up to date"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle will hold; the lives of its leases are read while it is written."""

    tenant_id: str
    head: dict[str, Any]
    months: list[dict[str, Any]]
    prices: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    # None where nothing is said of tax, as in every bundle of older releases.
    taxes: list[dict[str, Any]] | None
    terms: bool  # whether prices are told with more than what they cost
    # What the month carries beside its seconds, and what that follows from; None where it carries nothing.
    monthly: dict[str, list[dict[str, Any]]] | None
    commitments: list[dict[str, Any]]  # that hold in the month; where there are none, nothing is said of any
    corrected: list[dict[str, Any]]  # what corrections changed of it while its month was open
    leases: list[tuple[str, int]]  # by id, each with the last of its stretches that is charged here
    volumes: list[tuple[str, int]]  # the same; where there are none, nothing is said of any
    late: dict[str, list[Part]]

    def __iter__(self) -> Iterator[bytes]:
        """Yield its bytes. No transaction is open in between, however slowly they are taken."""
        seal = hashlib.sha256()
        for text in self._body():
            part = text.encode()
            seal.update(part)
            yield part
        yield f'"sha256":"{seal.hexdigest()}"}}\n'.encode()

    def whole(self, *, most: int) -> bytes | None:
        """Return all of it, or None when that is more than so many bytes."""
        held = bytearray()
        for part in self:
            held += part
            if len(held) > most:
                return None
        return bytes(held)

    def _body(self) -> Iterator[str]:
        told = TERMS if self.terms else UNTAXED if self.taxes is None else TAXED
        version = told if self.monthly is None else CORRECTED if self.corrected else MONTHLY
        version = COMMITTED if self.commitments else VOLUMES if self.volumes else version
        yield f'{{"format":"{FORMAT}","version":{version},\n"invoice":{_json(self.head)},\n'
        sections = [("months", self.months), ("prices", self.prices), ("lines", self.lines)]
        if self.taxes is not None:
            sections.append(("taxes", self.taxes))
        sections += (self.monthly or {}).items()
        if version >= CORRECTED:
            sections.append(("corrected", self.corrected))
        if version >= COMMITTED:
            sections.append(("commitments", self.commitments))
        for name, rows in sections:
            yield f'"{name}":[{",".join(f"{chr(10)}{_json(row)}" for row in rows)}],\n'
        if version >= VOLUMES:
            yield '"volumes":['
            for at in range(0, len(self.volumes), AT_ONCE):
                kept = self._histories(self.volumes[at : at + AT_ONCE])
                yield ("," if at else "") + ",".join(f"\n{_json(history)}" for history in kept)
            yield "],\n"
        yield '"leases":['
        for at in range(0, len(self.leases), AT_ONCE):
            lives = self._lives(self.leases[at : at + AT_ONCE])
            yield ("," if at else "") + ",".join(f"\n{_json(life)}" for life in lives)
        yield "],\n"

    def _lives(self, some: list[tuple[str, int]]) -> list[dict[str, Any]]:
        asked: dict[str, Any] = {"leases": [lease for lease, _ in some], "lasts": [last for _, last in some]}
        with as_tenant(self.tenant_id), connection.cursor() as cursor:
            cursor.execute(statement("bundle_steps"), asked)
            rows = cursor.fetchall()
            quotes = {quote.lease_id: quote for quote in Quote.objects.filter(lease__in=asked["leases"])}
        steps = {
            lease: [_step(row, terms=self.terms) for row in life]
            for lease, life in groupby(rows, itemgetter(0))
        }
        return [
            {
                "id": lease,
                "promised": _promise(quotes[lease]) if lease in quotes else None,
                "late": self.late.get(lease, []),
                "steps": steps[lease],
            }
            for lease, _ in some
        ]

    def _histories(self, some: list[tuple[str, int]]) -> list[dict[str, Any]]:
        asked: dict[str, Any] = {"volumes": [pk for pk, _ in some], "lasts": [last for _, last in some]}
        with as_tenant(self.tenant_id), connection.cursor() as cursor:
            cursor.execute(statement("bundle_volumes"), asked)
            rows = cursor.fetchall()
            since = sold_since()
        steps = {volume: [_gib(row) for row in life] for volume, life in groupby(rows, itemgetter(0))}
        return [
            {
                "id": volume,
                "sold_since": _moment(since) if since else None,
                "late": self.late.get(volume, []),
                "steps": steps[volume],
            }
            for volume, _ in some
        ]


def file_name(invoice: Invoice) -> str:
    """Return what the file is called: invoice-2026-10-0001.json."""
    return f"invoice-{invoice if invoice.number else f'{invoice.period.label}-draft'}.json"


def bundle(invoice: Invoice) -> Bundle:
    """Gather what an invoice follows from. Runs behind the tenant's wall.

    Raises DraftMoves while a draft is behind its own charges, which is mended within seconds.
    """
    for _ in range(TRIES):
        invoice.refresh_from_db(fields=["status", "total", "tax", "treatment", "agreed"])
        lines = list(InvoiceLine.objects.filter(invoice=invoice).order_by("n"))
        charged, carried = charged_on(invoice), reckoning.of(invoice)
        if invoice.status != InvoiceStatus.DRAFT or _settled(invoice, lines, charged, carried):
            return _gathered(invoice, lines, charged, carried)
    raise DraftMoves(
        "What was charged last is not on its lines yet.",
        fix="Ask again in a minute; a final invoice never moves.",
    )


@dataclass(slots=True)
class Charged:
    """What charges come to: each lease's or volume's last stretch among them, and the sums of every line."""

    last: dict[str, int]
    sums: dict[Key, tuple[int, int, int]]  # leases, unit-seconds, exact amount
    promised: set[int] = field(default_factory=set)  # price versions that quotes of these leases are of
    volumes: set[str] = field(default_factory=set)  # which of `last` are no leases


def charged_on(invoice: Invoice) -> Charged:
    """Read it in one statement, so that it is of one moment."""
    last, promised, volumes = dict[str, int](), set[int](), set[str]()
    sums: defaultdict[Key, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    with connection.cursor() as cursor:
        cursor.execute(statement("bundle_leases"), {"period": invoice.period_id})
        for lease, seq, project, offering, price, unit_seconds, exact_num, meter, kept in cursor.fetchall():
            volumes |= {lease} if meter == GIB_SECONDS else set()
            last[lease] = max(last.get(lease, 0), seq)
            leases, seconds, exact = sums[project, offering, price]
            sums[project, offering, price] = leases + 1, seconds + unit_seconds, exact + int(exact_num)
            promised |= {kept} if kept else set()
    return Charged(last, dict(sums), promised, volumes)


def _settled(
    invoice: Invoice, lines: list[InvoiceLine], charged: Charged, carried: list[MonthCharge]
) -> bool:
    """Tell whether a draft's lines and total are those of its charges, and of what its month carries."""
    said = {_key(line): (line.leases, line.unit_seconds, line.charged_num) for line in lines if line.is_usage}
    month = {_key(line): int(line.month_num) for line in lines if line.month_num}
    if month != reckoning.by_line(carried):
        return False
    return said == charged.sums and invoice.total == sum(line.minor + line.tax_minor for line in lines)


def _key(line: InvoiceLine) -> Key:
    return line.project_id, line.offering_id, line.price_version_id


def _gathered(
    invoice: Invoice, lines: list[InvoiceLine], charged: Charged, carried: list[MonthCharge]
) -> Bundle:
    late = defaultdict[str, list[tuple[int, int]]](list)
    corrected = [_corrected(part) for part in reading.on_invoice(invoice.period_id)]
    more = bool(carried or corrected)  # than older programs know
    with connection.cursor() as cursor:
        cursor.execute(statement("bundle_late"), {"period": invoice.period_id})
        for lease, seq, period in cursor.fetchall():
            if seq <= charged.last.get(lease, -1):  # else it was charged after those were read
                late[lease].append((seq, period))
    wanted = {invoice.period_id, *(period for parts in late.values() for _, period in parts)}
    months = list(BillingPeriod.objects.filter(pk__in=wanted).order_by("span"))
    labels = {month.pk: month.label for month in months}
    end = max(month.span.upper for month in months)
    priced = {line.price_version_id for line in lines} | charged.promised
    versions = list(PriceVersion.objects.filter(pk__in=priced).order_by("pk"))
    commitments = facts.commitments(invoice)
    more = more or bool(charged.volumes or commitments)
    terms = more or any(version.tenant_id or version.free_start_s for version in versions)
    nano = {version.pk: version.nano_per_hour for version in versions if terms}
    taxed = bool(invoice.treatment) or terms
    told = {"tax": invoice.tax, "treatment": invoice.treatment} if taxed else {}
    return Bundle(
        tenant_id=invoice.tenant_id,
        head={
            "id": invoice.pk,
            "tenant": invoice.tenant_id,
            "number": str(invoice) if invoice.number else None,
            "month": labels[invoice.period_id],
            "currency": invoice.currency,
            "decimals": exponent_of(invoice.currency),
            "total": invoice.total,
            **told,
        },
        months=[_month(month) for month in months],
        prices=[
            _price(version, end, terms=terms) | (facts.price(version) if more else {}) for version in versions
        ],
        lines=[
            _line(
                line, told, by=invoice.treatment, nano=nano.get(line.price_version_id, 0) if terms else None
            )
            | (facts.line(line) if more else {})
            for line in lines
        ],
        taxes=_taxes(invoice) if taxed else None,
        terms=terms,
        monthly=facts.monthly(invoice, lines, carried) if more else None,
        commitments=commitments,
        corrected=corrected,
        leases=sorted(one for one in charged.last.items() if one[0] not in charged.volumes),
        volumes=sorted(one for one in charged.last.items() if one[0] in charged.volumes),
        late={
            lease: [{"seq": seq, "month": labels[period]} for seq, period in sorted(parts)]
            for lease, parts in late.items()
        },
    )


def _corrected(part: CorrectionPart) -> dict[str, Any]:
    """Tell what a person decided: so many seconds more or less, or another price for them."""
    instead = part.share.correction.nano_per_hour
    return {
        "correction": part.share.correction_id,
        "lease": part.lease_id,
        "project": part.project_id,
        "offering": part.offering_id,
        "price": part.price_version_id,
        "start": _moment(part.s),
        "end": _moment(part.e),
        "quantity": part.quantity,
        "sign": 0 if instead is not None else 1 if part.unit_seconds > 0 else -1,
        "nano_per_hour": str(part.nano_per_hour),
        "instead": None if instead is None else str(instead),
    }


def _month(month: BillingPeriod) -> dict[str, Any]:
    """Tell a month, and by which zone each of its borders was drawn: a tenant may have moved in between."""
    around = BillingPeriod.objects.filter(tenant_id=month.tenant_id)
    zones = []
    for border, neighbour in (
        (month.span.lower, {"span__endswith": month.span.lower}),
        (month.span.upper, {"span__startswith": month.span.upper}),
    ):
        zone = month.time_zone
        if not _begins(border, zone):
            beside = around.filter(**neighbour).values_list("time_zone", flat=True).first()
            zone = beside if beside and _begins(border, beside) else zone
        zones.append(zone)
    return {
        "label": month.label,
        "start": _moment(month.span.lower),
        "end": _moment(month.span.upper),
        "start_zone": zones[0],
        "end_zone": zones[1],
    }


def _begins(border: datetime, zone: str) -> bool:
    return month_of(zone, border.astimezone(UTC)).start == border


def _price(version: PriceVersion, end: datetime, *, terms: bool) -> dict[str, Any]:
    """Tell a price; when it ends beyond these months is left out, for it may be decided later."""
    until = version.valid.upper
    return {
        "id": version.pk,
        "offering": version.offering_id,
        "nano_per_hour": str(version.nano_per_hour),
        "since": _moment(version.valid.lower),
        "until": _moment(until) if until and until < end else None,
        **({"own": version.tenant_id is not None, "free_start_s": version.free_start_s} if terms else {}),
    }


def _promise(quote: Quote) -> dict[str, Any]:
    """Tell all that a lease was promised, for its price is no longer that of the list."""
    return {
        "quote": quote.pk,
        "price": quote.price_version_id,
        "offering": quote.offering_id,
        "nano_per_hour": str(quote.nano_per_hour),
        "quantity": quote.quantity,
        "max_duration_s": quote.max_duration_s,
        "cap": quote.cap_minor,
        "made": _moment(quote.made_at),
        "expires": _moment(quote.expires_at),
        "cited": _moment(quote.cited_at),
    }


def _line(line: InvoiceLine, told: dict[str, Any], *, by: str, nano: int | None) -> dict[str, Any]:
    """Tell a line; of a category of tax only where the invoice says by which rule it is taxed."""
    taxed = {"tax_category": line.tax_category if by else "", "tax": line.tax_minor}
    return {
        "n": line.n,
        "project": line.project_id,
        "offering": line.offering_id,
        "price": line.price_version_id,
        "leases": line.leases,
        "unit_seconds": line.unit_seconds,
        "exact": str(int(line.exact_num)),
        "minor": line.minor,
        **(taxed if told else {}),
        **(_given_back(line, nano) if nano is not None else {}),
    }


def _given_back(line: InvoiceLine, nano: int) -> dict[str, Any]:
    return {"given_back_s": line.given_back_s, "given_back": str(line.given_back_s * nano)}


def _taxes(invoice: Invoice) -> list[dict[str, Any]]:
    rows = InvoiceTax.objects.filter(invoice=invoice).order_by("category")
    return [dict(row) for row in rows.values("category", "rate_bp", "net", "tax")]


def _step(row: tuple[Any, ...], *, terms: bool) -> dict[str, Any]:
    _, seq, at, state, offering, project, quantity, taken = row
    return {
        "seq": seq,
        "at": _moment(at),
        "state": state,
        "offering": offering,
        "project": project,
        "quantity": quantity,
        **({"taken": taken} if terms else {}),
    }


def _gib(row: tuple[Any, ...]) -> dict[str, Any]:
    _, seq, at, gib, offering, project = row
    return {"seq": seq, "at": _moment(at), "gib": gib, "offering": offering, "project": project}


def _moment(at: datetime) -> str:
    """Write a moment to the second, without asking the locale."""
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def _json(thing: dict[str, Any]) -> str:
    return json.dumps(thing, separators=(",", ":"))
