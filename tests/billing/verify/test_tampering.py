"""Bundles of random months, and detection of tampering.

Bits of a bundle are flipped, which the digest reveals; facts are changed with a new digest, which the sums reveal.
"""

import copy
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.models import Invoice
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.verify.verify import Unreadable, check
from tenants.services.rls import tenant_scope
from tests.billing import random_tenants
from tests.billing.histories import invoices_of, utc
from tests.billing.random_tenants import RandomTenant, month_start
from tests.billing.rating.test_lease_rating import undone
from tests.billing.verify.written_bundles import Document, write_bundle

pytestmark = pytest.mark.django_db
LATER = utc("2027-12-01 00:00:00")
MOMENT = "%Y-%m-%dT%H:%M:%SZ"
Tampering = tuple[str, Document]


def create_random_month(seed: int, zone: str, month: int) -> RandomTenant:
    """Create two months of a tenant; the first may close early."""
    chance, since, until = random.Random(seed), month_start(2026, month), month_start(2026, month + 2)
    sells = random_tenants.create_market(chance, since, until, offerings=2, changes=2)
    story = random_tenants.create_random_tenant(zone)
    random_tenants.add_random_leases(chance, story, sells, since, until, leases=4)
    lease_rating.rate_all_leases(now=until)
    if chance.random() < 0.5:
        close_month.close_due_months(now=month_start(2026, month + 1) + timedelta(days=2))
    random_tenants.add_random_leases(chance, story, sells, since, until, leases=4)
    lease_rating.rate_all_leases(now=LATER)
    drafts.refresh_drafts(story.tenant, now=LATER)
    if chance.random() < 0.5:
        close_month.close_due_months(now=LATER)
    return story


def build_bundle(invoice: Invoice) -> bytes:
    with tenant_scope(invoice.tenant_id):
        return b"".join(invoice_bundles.build_bundle(invoice))


@pytest.mark.deep
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(random_tenants.ZONES), st.integers(1, 22))
def test_bundles_of_random_months_verify_and_are_reproducible(seed: int, zone: str, month: int) -> None:
    with undone():
        for invoice in invoices_of(create_random_month(seed, zone, month).tenant):
            raw = build_bundle(invoice)
            report = check(raw)
            assert (report.differences, report.unchecked, report.total) == ([], [], invoice.total)
            assert build_bundle(invoice) == raw


@pytest.mark.deep
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(random_tenants.ZONES), st.integers(1, 22))
def test_every_tampering_of_a_bundle_is_detected(seed: int, zone: str, month: int) -> None:
    with undone():
        for invoice in invoices_of(create_random_month(seed, zone, month).tenant):
            raw = build_bundle(invoice)
            for what, document in tampered_bundles(json.loads(raw)):
                assert not passes(write_bundle(document)), what
            for place in random.Random(seed).sample(range(len(raw)), 40):
                assert not passes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]), place


def passes(raw: bytes) -> bool:
    try:
        return check(raw).equal
    except Unreadable:
        return False


def test_a_rewritten_bundle_verifies_like_the_original() -> None:
    """Else a tampering could be found by the writing alone."""
    for invoice in invoices_of(create_random_month(7, "Australia/Lord_Howe", 3).tenant):
        assert passes(write_bundle(json.loads(build_bundle(invoice))))


def tampered_bundles(good: Document) -> Iterator[Tampering]:
    """Yield the document with each relevant fact changed."""
    yield from changed_by_one(good, ("invoice", "total"))
    if any(line["minor"] for line in good["lines"]):  # nothing is nothing, with however many decimals
        yield from changed_by_one(good, ("invoice", "decimals"))
    for n, line in enumerate(good["lines"]):
        for name in ("n", "leases", "unit_seconds", "exact", "minor", "given_back_s", "given_back"):
            if name not in line:
                continue  # of a version that does not tell
            yield from changed_by_one(good, ("lines", n, name))
        for name in ("project", "offering"):
            yield f"line {n} is of another {name}", put(good, ("lines", n, name), f"{line[name]}x")
    # Others are only known to be above the price of a quote, whatever they are.
    paid = {line["price"] for line in good["lines"]}
    paid |= {lease["promised"]["price"] for lease in good["leases"] if lease["promised"]}
    for n, price in enumerate(good["prices"]):
        if price["id"] in paid:
            yield from changed_by_one(good, ("prices", n, "nano_per_hour"))
    for n in range(len(good["months"])):
        for name in ("start", "end"):
            yield from changed_by_one(good, ("months", n, name))
    for n, lease in enumerate(good["leases"]):
        for s in range(len(lease["steps"])):
            yield f"lease {n} lacks transition {s}", without(good, ("leases", n, "steps"), s)
        for part in range(len(lease["late"])):
            yield f"lease {n} is not late", without(good, ("leases", n, "late"), part)
        if lease["promised"]:
            yield (
                f"lease {n} lacks its quote's offering",
                put(good, ("leases", n, "promised", "offering"), "off_x"),
            )
            for name in ("price", "nano_per_hour", "quantity", "cap", "cited"):
                yield from changed_by_one(good, ("leases", n, "promised", name))
        yield from shifted_steps(good, n)
    for name in ("lines", "prices", "leases", "months"):
        for n in range(len(good[name])):
            if name != "prices" or good[name][n]["id"] in paid:
                yield f"{name} lack {n}", without(good, (name,), n)
            yield f"{name} have {n} twice", again(good, name, n)


def shifted_steps(good: Document, n: int) -> Iterator[Tampering]:
    """Yield a lease's steps with one charged time changed by one second."""
    steps = good["leases"][n]["steps"]
    own = next(month for month in good["months"] if month["label"] == good["invoice"]["month"])
    terms = [(step["state"] == "active" and step["quantity"], step["offering"], step["project"]) for step in steps]
    for s, (before, step) in enumerate(pairwise(steps), 1):
        inside = own["start"] < step["at"] < own["end"]
        # What moves between two stretches on the same line is on it either way.
        if not inside or terms[s - 1] == terms[s] or not (terms[s - 1][0] or starts_interval(steps, s)):
            continue
        yield f"lease {n}, transition {s} is a second later", put(good, at_of(n, s), moved(step["at"], 1))
        if before["at"] < step["at"]:
            yield (
                f"lease {n}, transition {s} is a second earlier",
                put(good, at_of(n, s), moved(step["at"], -1)),
            )


def starts_interval(steps: list[Document], s: int) -> bool:
    """Return whether this transition starts a charged interval."""
    return steps[s]["state"] == "active" and s + 1 < len(steps)


def at_of(n: int, s: int) -> tuple[Any, ...]:
    return "leases", n, "steps", s, "at"


def changed_by_one(good: Document, where: tuple[Any, ...]) -> Iterator[Tampering]:
    was: Any = good
    for key in where:
        was = was[key]
    for by in (1, -1):
        if isinstance(was, int):
            now: Any = was + by
        elif was[-1] == "Z":
            now = moved(was, by)
        else:
            now = str(int(was) + by)
        yield f"{where} by {by}", put(good, where, now)


def put(good: Document, where: tuple[Any, ...], value: object) -> Document:
    changed: Any = copy.deepcopy(good)
    place = changed
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    return changed  # type: ignore[no-any-return]


def without(good: Document, where: tuple[Any, ...], n: int) -> Document:
    changed: Any = copy.deepcopy(good)
    place = changed
    for key in where:
        place = place[key]
    del place[n]
    return changed  # type: ignore[no-any-return]


def again(good: Document, name: str, n: int) -> Document:
    changed = copy.deepcopy(good)
    changed[name].append(changed[name][n])
    return changed


def moved(text: str, by: int) -> str:
    return (datetime.strptime(text, MOMENT) + timedelta(seconds=by)).strftime(MOMENT)  # noqa: DTZ007
