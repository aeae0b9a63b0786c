"""Invoice bundle: everything an invoice follows from, as JSON for independent verification.

It holds facts only: lease transitions, prices, months and the invoice's lines. Our own charges are
left out, because the verifier computes them again. It holds ids and no names: names may change, an
invoice does not. A final invoice's bundle always has the same bytes. `billing/verify/verify.py`
documents how to read it.
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

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import exponent_of
from billing.domain.periods import month_of
from billing.models import (
    BillingPeriod,
    CorrectedInterval,
    Invoice,
    InvoiceAdjustment,
    InvoiceLine,
    InvoiceStatus,
    InvoiceTax,
    PriceVersion,
    Quote,
)
from billing.models.charges import GIB_SECONDS
from billing.services.adjustments import adjustment_facts, month_adjustments
from billing.services.adjustments.month_amounts import RULES, rules_of
from billing.services.documents import earlier_usage
from billing.services.invoicing.corrections import corrected_charges
from billing.services.rating import cancelled_charges
from ports.postgres.sql_statements import query_rows
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope

FORMAT = "gpubroker-invoice"
# Write the oldest version that suffices: a final bundle's bytes never change.
V_UNTAXED, V_TAXED, V_TERMS, V_ADJUSTMENTS, V_CORRECTED, V_VOLUMES, V_COMMITMENTS, V_CEILINGS = range(1, 9)
LEASES_PER_QUERY = 1000  # leases in one statement
MAX_TRIES = 3

LineKey = tuple[str, str, int]  # project, offering, price version: the key of a line
LatePart = dict[str, int | str]


class DraftChanging(ProblemError):
    code, status, title = "draft-updating", 409, "The draft is being updated"


@dataclass(frozen=True, slots=True)
class InvoiceBundle:
    """Contents of a bundle; lease histories are read while it is written."""

    tenant_id: str
    head: dict[str, Any]
    months: list[dict[str, Any]]
    prices: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    # None if the bundle has no taxes, as in every bundle of older releases.
    taxes: list[dict[str, Any]] | None
    terms: bool  # whether prices include their terms
    # Adjustments of the month and the agreements behind them; None if there are none.
    monthly: dict[str, list[dict[str, Any]]] | None
    commitments: list[dict[str, Any]]  # that hold in the month; the section is left out if empty
    corrected: list[dict[str, Any]]  # corrections booked while the month was open
    leases: list[tuple[str, int]]  # by id, each with its last interval charged here
    volumes: list[tuple[str, int]]  # the same; the section is left out if empty
    late: dict[str, list[LatePart]]
    ceilings: bool  # whether it needs the newest rules
    corrected_before: list[dict[str, Any]]  # usage that corrections added to earlier invoices

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bundle as bytes.

        No transaction is open between the parts, however slowly they are consumed.
        """
        seal = hashlib.sha256()
        for text in self._body():
            part = text.encode()
            seal.update(part)
            yield part
        yield f'"sha256":"{seal.hexdigest()}"}}\n'.encode()

    def whole(self, *, most: int) -> bytes | None:
        """Return the whole bundle, or None if it exceeds that many bytes."""
        held = bytearray()
        for part in self:
            held += part
            if len(held) > most:
                return None
        return bytes(held)

    def _body(self) -> Iterator[str]:
        base = V_TERMS if self.terms else V_UNTAXED if self.taxes is None else V_TAXED
        version = base if self.monthly is None else V_CORRECTED if self.corrected else V_ADJUSTMENTS
        version = V_COMMITMENTS if self.commitments else V_VOLUMES if self.volumes else version
        version = V_CEILINGS if self.ceilings else version
        yield f'{{"format":"{FORMAT}","version":{version},\n"invoice":{_compact_json(self.head)},\n'
        sections = [("months", self.months), ("prices", self.prices), ("lines", self.lines)]
        if self.taxes is not None:
            sections.append(("taxes", self.taxes))
        sections += (self.monthly or {}).items()
        if version >= V_CORRECTED:
            sections.append(("corrected", self.corrected))
        if version >= V_COMMITMENTS:
            sections.append(("commitments", self.commitments))
        if version >= V_CEILINGS:
            sections.append(("corrected_before", self.corrected_before))
        for name, rows in sections:
            yield f'"{name}":[{",".join(f"{chr(10)}{_compact_json(row)}" for row in rows)}],\n'
        if version >= V_VOLUMES:
            yield '"volumes":['
            for at in range(0, len(self.volumes), LEASES_PER_QUERY):
                kept = self._histories(self.volumes[at : at + LEASES_PER_QUERY])
                yield ("," if at else "") + ",".join(f"\n{_compact_json(history)}" for history in kept)
            yield "],\n"
        yield '"leases":['
        for at in range(0, len(self.leases), LEASES_PER_QUERY):
            lives = self._lives(self.leases[at : at + LEASES_PER_QUERY])
            yield ("," if at else "") + ",".join(f"\n{_compact_json(life)}" for life in lives)
        yield "],\n"

    def _lives(self, some: list[tuple[str, int]]) -> list[dict[str, Any]]:
        leases, lasts = zip(*some, strict=True)
        with tenant_scope(self.tenant_id):
            rows = query_rows("billing/documents/lease_transitions", leases=list(leases), lasts=list(lasts))
            quotes = {quote.lease_id: quote for quote in Quote.objects.filter(lease__in=leases)}
        steps = {
            lease: [_transition_json(row, terms=self.terms) for row in life]
            for lease, life in groupby(rows, itemgetter(0))
        }
        return [
            {
                "id": lease,
                "promised": _quote_json(quotes[lease], ceilings=self.ceilings) if lease in quotes else None,
                "late": self.late.get(lease, []),
                "steps": steps[lease],
            }
            for lease, _ in some
        ]

    def _histories(self, some: list[tuple[str, int]]) -> list[dict[str, Any]]:
        volumes, lasts = zip(*some, strict=True)
        with tenant_scope(self.tenant_id):
            rows = query_rows("billing/documents/volume_steps", volumes=list(volumes), lasts=list(lasts))
            since = PriceVersion.objects.storage_sold_since()
        steps = {volume: [_volume_step_json(row) for row in life] for volume, life in groupby(rows, itemgetter(0))}
        return [
            {
                "id": volume,
                "sold_since": _format_utc(since) if since else None,
                "late": self.late.get(volume, []),
                "steps": steps[volume],
            }
            for volume, _ in some
        ]


def bundle_file_name(invoice: Invoice) -> str:
    """Return what the file is called: invoice-2026-10-0001.json."""
    return f"invoice-{invoice if invoice.number else f'{invoice.period.label}-draft'}.json"


def build_bundle(invoice: Invoice) -> InvoiceBundle:
    """Collect everything an invoice follows from. Call in the tenant's RLS scope.

    Raises DraftChanging while a draft lags behind its charges; that passes within seconds.
    """
    for _ in range(MAX_TRIES):
        invoice.refresh_from_db(fields=["status", "total", "tax", "treatment", "agreed"])
        lines = list(InvoiceLine.objects.filter(invoice=invoice).order_by("n"))
        charged, carried = read_charged_usage(invoice), month_adjustments.adjustments_of(invoice)
        if invoice.status != InvoiceStatus.DRAFT or _is_draft_current(invoice, lines, charged, carried):
            return _collect(invoice, lines, charged, carried)
    raise DraftChanging(
        "The latest charges are not on its lines yet.", fix="Try again in a minute. Final invoices do not change."
    )


@dataclass(slots=True)
class ChargedUsage:
    """Charges of an invoice: last interval per lease or volume, and sums per line."""

    last: dict[str, int]
    sums: dict[LineKey, tuple[int, int, int]]  # leases, unit-seconds, exact amount
    promised: set[int] = field(default_factory=set)  # price versions of these leases' quotes
    volumes: set[str] = field(default_factory=set)  # those of `last` that are volumes
    capped: bool = False  # whether any of those quotes is a ceiling
    later: list[str] = field(default_factory=list)  # corrections made since the invoice was cancelled


def read_charged_usage(invoice: Invoice) -> ChargedUsage:
    """Read the charges of an invoice in one statement, as of one moment."""
    last, promised, volumes, capped = dict[str, int](), set[int](), set[str](), False
    sums: defaultdict[LineKey, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    later = cancelled_charges.later_corrections(invoice)
    rows = query_rows("billing/documents/invoice_leases", period=invoice.period_id, without=later)
    for lease, seq, project, offering, price, unit_seconds, exact_num, meter, kept, ceiling in rows:
        volumes |= {lease} if meter == GIB_SECONDS else set()
        last[lease] = max(last.get(lease, 0), seq)
        leases, seconds, exact = sums[project, offering, price]
        sums[project, offering, price] = leases + 1, seconds + unit_seconds, exact + int(exact_num)
        promised |= {kept} if kept else set()
        capped = capped or bool(ceiling)
    return ChargedUsage(last, dict(sums), promised, volumes, capped, later)


def _is_draft_current(
    invoice: Invoice, lines: list[InvoiceLine], charged: ChargedUsage, carried: list[InvoiceAdjustment]
) -> bool:
    """Return whether a draft matches its charges and its adjustments."""
    stored = {_key(line): (line.leases, line.unit_seconds, line.charged_num) for line in lines if line.is_usage}
    month = {_key(line): int(line.month_num) for line in lines if line.month_num}
    if month != month_adjustments.adjustment_by_line(carried):
        return False
    return stored == charged.sums and invoice.total == sum(line.minor + line.tax_minor for line in lines)


def _key(line: InvoiceLine) -> LineKey:
    return line.project_id, line.offering_id, line.price_version_id


def _collect(
    invoice: Invoice, lines: list[InvoiceLine], charged: ChargedUsage, carried: list[InvoiceAdjustment]
) -> InvoiceBundle:
    late = defaultdict[str, list[tuple[int, int]]](list)
    corrected = [_correction_json(part) for part in corrected_charges.corrections_on_invoice(invoice.period_id)]
    more = bool(carried or corrected)  # than older verifiers know
    for lease, seq, period in query_rows("billing/documents/late_usage", period=invoice.period_id):
        if seq <= charged.last.get(lease, -1):  # otherwise it was charged after those were read
            late[lease].append((seq, period))
    wanted = {invoice.period_id, *(period for parts in late.values() for _, period in parts)}
    months = list(BillingPeriod.objects.filter(pk__in=wanted).order_by("span"))
    labels = {month.pk: month.label for month in months}
    end = max(month.span.upper for month in months)
    priced = {line.price_version_id for line in lines} | charged.promised
    commitments = adjustment_facts.commitments_json(invoice)
    more = more or bool(charged.volumes or commitments)
    ceilings = charged.capped or adjustment_facts.have_overlaps(commitments)
    if more and rules_of(invoice) == RULES:
        ceilings = ceilings or bool(charged.promised or late) or any(part["sign"] == 1 for part in corrected)
    earlier = earlier_usage.earlier_usage(invoice) if ceilings else earlier_usage.NONE
    if ceilings:
        more, months = True, earlier_usage.with_months(months, earlier.months)
        labels = {month.pk: month.label for month in months}
        commitments = adjustment_facts.commitments_json(invoice, months)
    span = DateTimeTZRange(months[0].span.lower, end)
    promised = charged.promised | earlier.promised if ceilings else set()
    versions = _versions(invoice, priced | promised, promised, earlier.offerings, span)
    terms = more or any(version.tenant_id or version.free_start_s for version in versions)
    nano = {version.pk: version.nano_per_hour for version in versions if terms}
    taxed = bool(invoice.treatment) or terms
    tax = {"tax": invoice.tax, "treatment": invoice.treatment} if taxed else {}
    last, volumes = earlier.joined(charged.last), charged.volumes | earlier.volumes
    return InvoiceBundle(
        tenant_id=invoice.tenant_id,
        head={
            "id": invoice.pk,
            "tenant": invoice.tenant_id,
            "number": str(invoice) if invoice.number else None,
            "month": labels[invoice.period_id],
            "currency": invoice.currency,
            "decimals": exponent_of(invoice.currency),
            "total": invoice.total,
            **tax,
        },
        months=[_month_json(month) for month in months],
        prices=[
            _price_json(version, end, terms=terms) | (adjustment_facts.price_model_json(version) if more else {})
            for version in versions
        ],
        lines=[
            _line_json(line, tax, by=invoice.treatment, nano=nano.get(line.price_version_id, 0) if terms else None)
            | (adjustment_facts.line_adjustment_json(line) if more else {})
            for line in lines
        ],
        taxes=_taxes_json(invoice) if taxed else None,
        terms=terms,
        monthly=adjustment_facts.month_json(invoice, lines, carried) if more else None,
        commitments=commitments,
        corrected=corrected,
        corrected_before=[_correction_json(part) for part in earlier.corrected],
        leases=sorted(one for one in last.items() if one[0] not in volumes),
        volumes=sorted(one for one in last.items() if one[0] in volumes),
        late={
            lease: [{"seq": seq, "month": labels[period]} for seq, period in sorted(parts)]
            for lease, parts in late.items()
        },
        ceilings=ceilings,
    )


def _versions(
    invoice: Invoice, priced: set[int], promised: set[int], late: set[str], span: DateTimeTZRange
) -> list[PriceVersion]:
    """Return all price versions that are needed to recompute the lines."""
    paid, quoted = PriceVersion.objects.paid_by(invoice.tenant_id), PriceVersion.objects.filter(pk__in=promised)
    offerings = late | set(quoted.values_list("offering", flat=True))
    in_force = paid.filter(currency=invoice.currency, offering__in=offerings, valid__overlap=span)
    return list((PriceVersion.objects.filter(pk__in=priced) | in_force).order_by("pk"))


def _correction_json(part: CorrectedInterval) -> dict[str, Any]:
    """Describe a correction: that many seconds more or less, or another price for them."""
    instead = part.share.correction.nano_per_hour
    return {
        "correction": part.share.correction_id,
        "lease": part.lease_id,
        "project": part.project_id,
        "offering": part.offering_id,
        "price": part.price_version_id,
        "start": _format_utc(part.s),
        "end": _format_utc(part.e),
        "quantity": part.quantity,
        "sign": 0 if instead is not None else 1 if part.unit_seconds > 0 else -1,
        "nano_per_hour": str(part.nano_per_hour),
        "instead": None if instead is None else str(instead),
    }


def _month_json(month: BillingPeriod) -> dict[str, Any]:
    """Describe a month and the time zone of each boundary.

    The two zones differ if the tenant changed its time zone in between.
    """
    around = BillingPeriod.objects.filter(tenant_id=month.tenant_id)
    zones = []
    for boundary, neighbour in (
        (month.span.lower, {"span__endswith": month.span.lower}),
        (month.span.upper, {"span__startswith": month.span.upper}),
    ):
        zone = month.time_zone
        if not _is_month_start(boundary, zone):
            beside = around.filter(**neighbour).values_list("time_zone", flat=True).first()
            zone = beside if beside and _is_month_start(boundary, beside) else zone
        zones.append(zone)
    return {
        "label": month.label,
        "start": _format_utc(month.span.lower),
        "end": _format_utc(month.span.upper),
        "start_zone": zones[0],
        "end_zone": zones[1],
    }


def _is_month_start(boundary: datetime, zone: str) -> bool:
    return month_of(zone, boundary.astimezone(UTC)).start == boundary


def _price_json(version: PriceVersion, end: datetime, *, terms: bool) -> dict[str, Any]:
    """Describe a price version.

    An end after these months is left out, because it may still change.
    """
    until = version.valid.upper
    return {
        "id": version.pk,
        "offering": version.offering_id,
        "nano_per_hour": str(version.nano_per_hour),
        "since": _format_utc(version.valid.lower),
        "until": _format_utc(until) if until and until < end else None,
        **({"own": version.tenant_id is not None, "free_start_s": version.free_start_s} if terms else {}),
    }


def _quote_json(quote: Quote, *, ceilings: bool) -> dict[str, Any]:
    """Describe the quote of a lease in full, because the list price may differ."""
    return {
        "quote": quote.pk,
        "price": quote.price_version_id,
        "offering": quote.offering_id,
        "nano_per_hour": str(quote.nano_per_hour),
        "quantity": quote.quantity,
        "max_duration_s": quote.max_duration_s,
        "cap": quote.cap_minor,
        "made": _format_utc(quote.made_at),
        "expires": _format_utc(quote.expires_at),
        "cited": _format_utc(quote.cited_at),
        **({"ceiling": quote.is_ceiling} if ceilings else {}),
    }


def _line_json(line: InvoiceLine, tax: dict[str, Any], *, by: str, nano: int | None) -> dict[str, Any]:
    """Describe an invoice line.

    Its tax category is included only if the invoice states its tax treatment.
    """
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
        **(taxed if tax else {}),
        **(_reversal_json(line, nano) if nano is not None else {}),
    }


def _reversal_json(line: InvoiceLine, nano: int) -> dict[str, Any]:
    return {"given_back_s": line.given_back_s, "given_back": str(line.given_back_s * nano)}


def _taxes_json(invoice: Invoice) -> list[dict[str, Any]]:
    rows = InvoiceTax.objects.filter(invoice=invoice).order_by("category")
    return [dict(row) for row in rows.values("category", "rate_bp", "net", "tax")]


def _transition_json(row: tuple[Any, ...], *, terms: bool) -> dict[str, Any]:
    _, seq, at, state, offering, project, quantity, taken = row
    return {
        "seq": seq,
        "at": _format_utc(at),
        "state": state,
        "offering": offering,
        "project": project,
        "quantity": quantity,
        **({"taken": taken} if terms else {}),
    }


def _volume_step_json(row: tuple[Any, ...]) -> dict[str, Any]:
    _, seq, at, gib, offering, project = row
    return {"seq": seq, "at": _format_utc(at), "gib": gib, "offering": offering, "project": project}


def _format_utc(at: datetime) -> str:
    """Format a moment to the second, independent of the locale."""
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def _compact_json(thing: dict[str, Any]) -> str:
    return json.dumps(thing, separators=(",", ":"))
