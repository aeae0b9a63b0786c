"""Amounts that several pages state: where each is read, and the list of them for people."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

AMOUNT = r"[€$£¥]([\d,]+(?:\.\d+)?)"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "compared-amounts.md"
Fetch = Callable[[str, str], str]  # of a visitor and an address: the visible text, or JSON for the API


@dataclass(frozen=True)
class Reading:
    """Where an amount stands; several {} of a pattern add up."""

    place: str
    address: str
    pattern: str = ""
    visitor: str = "tenant"
    path: str = ""  # within the JSON of the API

    def read(self, fetch: Fetch, ids: dict[str, str], places: int) -> Decimal:
        """Return the amount; it must be there."""
        text = fetch(self.visitor, self.address.format(**ids))
        if self.path:
            found = json.loads(text)
            for key in self.path.format(**ids).split("."):
                found = found[int(key)] if isinstance(found, list) else found[key]
            return Decimal(found).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        pattern = self.pattern.replace("{}", AMOUNT).replace("<column>", ids["column"])
        pattern = pattern.replace("<class>", ids["class_"].replace("_", "-"))
        match = re.search(pattern, text)
        assert match, f"{self.pattern!r} is not on {self.place}: {text}"
        return sum((Decimal(part.replace(",", "")) for part in match.groups()), Decimal(0))


LEASE = "/leases/{lease}/"
LAUNCH = "/launch/?offering={offering}&class={class_}&lasts=1+h"
TENANT = "/ops/tenants/{tenant}/"
ROW = r"\bshort .{0,80}?\bActive [^€$£¥]*"
COMPARED: dict[str, Sequence[Reading]] = {
    "spent this month": (
        Reading("top bar of every page", "/leases/", "Spent in November {}"),
        Reading("home", "/", "November Spend {}"),
        Reading("spend, figure", "/spend/", r"Spent, 1 – \d+ November {}"),
        Reading("spend, table", "/spend/", "Total 100 % {}"),
        Reading("budgets", "/budgets/", "{} spent"),
        Reading("tenant, for operators", TENANT, "Spent this month {}", "operator"),
        Reading("API, budgets", "/api/v1/budgets", path="items.0.spent.amount", visitor="api"),
        Reading("API, usage", "/api/v1/usage", path="total.amount", visitor="api"),
    ),
    "forecast of the month": (
        Reading("home", "/", "Forecast {}"),
        Reading("spend", "/spend/", "Forecast for 30 November {}"),
        Reading("budgets", "/budgets/", "forecast {}"),
        Reading("tenant, for operators", TENANT, "forecast {}", "operator"),
        Reading("API, forecast", "/api/v1/usage-forecast", path="going_on.amount", visitor="api"),
        Reading("API, budgets", "/api/v1/budgets", path="items.0.forecast.amount", visitor="api"),
    ),
    "spend rate": (
        Reading("top bar of every page", "/spend/", "Spend rate {}/h"),
        Reading("home", "/", r"Spend rate {}/h (?!Spent)"),
        Reading("leases", "/leases/", "Active leases on this page cost {}/h"),
        Reading("tenant, for operators", TENANT, "Spend rate {}/h active leases", "operator"),
        Reading("tenant, for operators: leases", TENANT, r"\d+ active, {}/h", "operator"),
    ),
    "charged so far for a running lease": (
        Reading("lease", LEASE, "Cost {}"),
        Reading("lease, sum of its runs", LEASE, "So far {}"),
        Reading("lease, release", LEASE, "Charged so far {}"),
        Reading("home", "/", ROW + r"[€$£¥][\d.,]+/h {} so far"),
        Reading("leases", "/leases/", ROW + r"[€$£¥][\d.,]+/h {} so far"),
        Reading("budgets", "/budgets/", r"short Kestrel [€$£¥][\d.,]+ reserved Active {}"),
        Reading("tenant, for operators", TENANT, ROW + r"[€$£¥][\d.,]+/h {} so far", "operator"),
        Reading("API, charges", "/api/v1/leases/{lease}/charges", path="cost_so_far.amount", visitor="api"),
    ),
    "maximum of a running lease": (
        Reading("lease", LEASE, "max {}"),
        Reading("budgets, charged and reserved", "/budgets/", r"short Kestrel [€$£¥][\d.,]+ reserved Active {} {}"),
    ),
    "price of an offering for the tenant": (
        Reading("catalogue", "/catalogue/", r"3g\.40gb H100 .{0,120}? free [\d,]+ <column>{}/h"),
        Reading("launch, offerings", LAUNCH, r"3g\.40gb H100 .{0,120}? free <column>{}/h"),
        Reading("launch, maximum of one hour", LAUNCH, "Launch — max {}"),
        Reading("lease", LEASE, r"Cost [€$£¥][\d.,]+ {}/h"),
        Reading("leases", "/leases/", ROW + "{}/h"),
        Reading("tenant, for operators", TENANT, ROW + "{}/h", "operator"),
        Reading("lease, extension of one hour", LEASE, "Extend 1 h — {} at most"),
    ),
    "list price of an offering": (
        Reading("offering, for operators", "/ops/offerings/{offering}/", r"scratch\. {}/h now", "operator"),
        Reading("offering, for operators: prices", "/ops/offerings/{offering}/", r"no end date {}/h", "operator"),
        Reading(
            "offerings, for operators",
            "/ops/offerings/",
            r"3g\.40gb \d+ CPUs[^€$£¥]{0,60}? <class> eu-north Published[^€$£¥]*{}/h",
            "operator",
        ),
    ),
    "cost of an ended lease": (
        Reading("lease", "/leases/{ended}/", "Cost (?:Explain )?{}"),
        Reading("lease, sum of its runs", "/leases/{ended}/", "Total {}"),
        Reading("leases", "/leases/?state=all", r"\bended .{0,80}?\bReleased .{0,60}?{} total"),
        Reading("API, charges", "/api/v1/leases/{ended}/charges", path="cost_so_far.amount", visitor="api"),
    ),
    "reserved in a budget": (
        Reading("budgets", "/budgets/", "spent, {} reserved"),
        Reading("API, budgets", "/api/v1/budgets", path="items.0.held.amount", visitor="api"),
    ),
    "left in a budget": (
        Reading("budgets", "/budgets/", r"Kestrel {} left of"),
        Reading("launch, remaining and maximum", LAUNCH, r"Maximum, 1 h {}.*Budget remaining {} of"),
        Reading("API, budgets", "/api/v1/budgets", path="items.0.left.amount", visitor="api"),
    ),
    "used and not invoiced": (
        Reading("tenant, for operators", TENANT, "Committed {}", "operator"),
        Reading("payment terms, for operators", TENANT + "payment-terms/", "Committed {}", "operator"),
    ),
    "draft invoice": (
        Reading("invoices", "/invoices/", "current draft is {}"),
        Reading("invoices, table", "/invoices/", r"after November 2026 {}"),
        Reading("invoice", "/invoices/{draft}/", "Total {}"),
        Reading("invoices, for operators", "/ops/invoices/", r"Kestrel .{0,20}?Draft .{0,40}?{}", "operator"),
        Reading("invoice, for operators", "/ops/invoices/{draft}/", "Total {}", "operator"),
        Reading("tenant, for operators", TENANT, r"Draft — {}", "operator"),
        Reading("API, invoices", "/api/v1/invoices/{draft}", path="total.amount", visitor="api"),
    ),
    "balance": (
        Reading("wallet", "/wallet/", "Balance {}"),
        Reading("statement", "/statement/", "Closing balance {}"),
        Reading("payment terms, for operators", TENANT + "payment-terms/", "Balance {}", "operator"),
    ),
}


def compared_amounts_page() -> str:
    """Return the list for people, in Markdown."""
    lines = [
        "# Amounts that pages must agree on",
        "",
        "Generated from `tests/web/portal/compared_amounts.py` (`GOLDEN=write` rewrites it). The test",
        "`tests/web/portal/test_amounts_agree_in_all_cases.py` reads every place below, of seeded tenants of each",
        "case, and compares them to the cent: plain, own price, tax, commitment, discount, prepaid, dollars in",
        "Kolkata, yen in Tokyo, spot, volume; after the metering run and before it.",
        "",
        "| amount | is the same on |",
        "|---|---|",
        *(f"| {name} | {'; '.join(each.place for each in places)} |" for name, places in COMPARED.items()),
    ]
    return "\n".join(lines) + "\n"
