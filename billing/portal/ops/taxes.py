"""Rates of tax: what each country takes of a category from which day on."""

import re
from datetime import date
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from billing.domain.countries import NAMES
from billing.domain.parties import Party
from billing.domain.tax import UNION, per_cent
from billing.models import TaxCategory, TaxRate
from billing.services.tax import rates, standings
from broker.portal.operations import OpsRequest, page
from tenants.portal.acts import MOST, ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_staff

PER_CENT = re.compile(r"(?P<whole>[0-9]{1,3})(?:\.(?P<part>[0-9]{1,2}))?")


@require_http_methods(["GET", "HEAD", "POST"])
@page("taxes")
def taxes(request: OpsRequest) -> HttpResponse:
    """List every rate there is; a POST adds one."""
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            rate = _publish(request)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            words = (
                f"{NAMES[rate.jurisdiction]}: {per_cent(rate.rate_bp)} % from {rate.valid.lower:%d %b %Y} on."
            )
            messages.success(request, words)
            return redirect("ops-taxes")
    with as_staff():
        told = _told(request, refusal)
        return render(request, "ops/taxes.html", told, status=refusal.status if refusal else 200)


def _told(request: OpsRequest, refusal: Refused | None) -> dict[str, Any]:
    supplier, today = standings.supplier(), request.now.date()
    rows = sorted(
        TaxRate.objects.all(),
        key=lambda row: (NAMES[row.jurisdiction], row.category, -row.valid.lower.toordinal()),
    )
    return {
        "rows": [
            {
                "rate": row,
                "country": NAMES[row.jurisdiction],
                "per_cent": per_cent(row.rate_bp),
                "now": row.valid.lower <= today and (row.valid.upper is None or today < row.valid.upper),
                "ahead": row.valid.lower > today,
            }
            for row in rows
        ],
        "supplier": supplier,
        "missing": _missing(supplier, rows, today),
        "countries": sorted(NAMES.items(), key=lambda entry: entry[1]),
        "categories": TaxCategory.choices,
        "typed": request.POST,
        "chosen": request.POST.get("jurisdiction", supplier.country if supplier else ""),
        "refusal": refusal,
        "wrong": getattr(refusal, "field", ""),
        "calls": [ops_call("Rates of tax", "ops/tax-rates", limit=MOST)],
    }


def _missing(supplier: Party | None, rows: list[TaxRate], today: date) -> list[str]:
    """Name the countries in whose months no invoice can become final: home, and in the union every member state."""
    if supplier is None:
        return []
    known = {row.jurisdiction for row in rows if row.category == TaxCategory.STANDARD and _holds(row, today)}
    owed = UNION if supplier.country in UNION else {supplier.country}
    return sorted(NAMES[country] for country in owed - known)


def _holds(row: TaxRate, day: date) -> bool:
    return bool(row.valid.lower <= day and (row.valid.upper is None or day < row.valid.upper))


def _publish(request: OpsRequest) -> TaxRate:
    return rates.publish(
        jurisdiction=request.POST.get("jurisdiction", ""),
        category=request.POST.get("category", ""),
        rate_bp=_basis_points(request.POST.get("rate", "")),
        since=_day(request.POST.get("since", "")),
        actor=request.actor,
        now=request.now,
    )


def _basis_points(text: str) -> int:
    """Read per cent as they are typed, such as 19 or 7.7."""
    if not (found := PER_CENT.fullmatch(text.strip())):
        raise Invalid(
            "rate", "A rate is a number such as 19 or 7.7, with at most two decimals.", fix="Type it anew."
        )
    return int(found["whole"] + (found["part"] or "").ljust(2, "0"))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise Invalid(
            "since", "A day looks like 2026-12-01.", fix="Choose the first day on which it holds."
        ) from None
