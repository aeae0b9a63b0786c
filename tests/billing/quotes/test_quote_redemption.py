"""Redemption of quotes: price, validity, scope and refusals."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from billing.domain.money import EXACT_PER_UNIT
from billing.models import InvoiceLine, PriceVersion, Quote
from billing.services.catalogue import price_list
from billing.services.invoicing import drafts
from billing.services.ledger import invariant_checks
from billing.services.quotes import quote_signatures
from billing.services.quotes.quote_redemption import QuoteExpired, QuoteMismatch, QuoteUsed, redeem_quote
from billing.services.quotes.quote_signatures import QuoteOffer, UnknownQuote
from billing.services.rating import lease_rating, spend
from billing.services.reports import earnings
from billing.services.reports.line_explanations import explain_invoice_line
from broker.models import Lease, Offering
from broker.services.leases.lifecycle import extension
from config.env import EnvironmentSettings
from tenants.models import Project, QuotaKind
from tenants.services.errors import InvalidValue, QuotaExceeded
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import EURO, HOUR, LONG_AGO, OPERATOR, charges_of, exact_spend
from tests.simulation import (
    NOW,
    Simulation,
    TenantContext,
    create_fleet,
    create_tenant,
    offering,
    reload_lease,
    simulate,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel(settings: Any) -> TenantContext:
    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    create_fleet()
    for profile in ("1g.10gb", "2g.20gb"):
        publish_price(offering(profile), EURO, since=LONG_AGO)
    return create_tenant("Kestrel")


def publish_price(what: Offering, nano: int, *, since: datetime) -> PriceVersion:
    return price_list.publish_price(
        offering=what,
        currency="EUR",
        nano_per_hour=nano,
        since=since,
        actor=OPERATOR,
        now=min(since, NOW),
    )


def make_quote(owner: TenantContext, sim: Simulation, *, project: Project | None = None, **terms: Any) -> QuoteOffer:
    """Return an offer at the current price of the smallest slice."""
    price = price_list.price_of(offering("1g.10gb"), currency="EUR", moment=sim.now)
    values = {"quantity": 1, "max_duration_s": 2 * HOUR, **terms}
    return quote_signatures.make_offer(price, project=project or owner.project, now=sim.now, **values)


def request_quoted_lease(sim: Simulation, owner: TenantContext, quote: QuoteOffer | str, **wanted: Any) -> Lease:
    sealed = quote if isinstance(quote, str) else quote.sealed
    values = {"max_duration_s": 2 * HOUR, **wanted}
    return sim.request_lease(owner, values.pop("what", offering("1g.10gb")), quote=sealed, **values)


def run_and_rate(sim: Simulation, lease: Lease, seconds: int) -> Lease:
    """Let a lease become active, run so long and end, then rate it."""
    sim.run(60)
    sim.run(seconds - (sim.now - active_since(lease)).total_seconds())
    sim.release_lease(reload_lease(lease))
    sim.run(60)
    lease_rating.rate_all_leases(now=sim.now)
    return reload_lease(lease)


def active_since(lease: Lease) -> datetime:
    since = reload_lease(lease).active_at
    assert since is not None
    return since


def stored_quotes() -> list[Quote]:
    with staff_scope():
        return list(Quote.objects.all())


def test_b40_the_quoted_price_is_charged_despite_later_price_changes(kestrel: TenantContext) -> None:
    """The price rises before launch and again at a month's end."""
    with simulate(datetime(2026, 11, 30, 22, 59, 50, tzinfo=UTC)) as sim:
        quote, what = make_quote(kestrel, sim), offering("1g.10gb")
        assert (quote.nano_per_hour, quote.hold_minor, quote.cap_minor) == (EURO, 200, 200)
        publish_price(what, 3 * EURO, since=sim.now + timedelta(seconds=5))
        publish_price(what, 7 * EURO, since=sim.now + timedelta(minutes=70))
        sim.run(10)
        assert price_list.price_of(what, currency="EUR", moment=sim.now).nano_per_hour == 3 * EURO
        cited, listed = (
            request_quoted_lease(sim, kestrel, quote),
            sim.request_lease(kestrel, what, max_duration_s=2 * HOUR),
        )
        begun = [run_and_rate(sim, lease, 2 * HOUR - 600) for lease in (cited, listed)]
        assert [lease.quote_id for lease in begun] == [quote.id, ""]
        drafts.refresh_drafts(kestrel.tenant, now=sim.now)
    mine = [charge for charge in charges_of(kestrel.tenant) if charge.lease_id == cited.pk]
    assert {charge.price_version_id for charge in mine} == {quote.version}
    assert len(mine) == 3, "a month's end cuts it, and a new price, which might have been lower"
    assert sum(int(c.exact_num) for c in mine) == sum(c.unit_seconds for c in mine) * EURO
    others = {c.price_version_id for c in charges_of(kestrel.tenant) if c.lease_id == listed.pk}
    assert len(others) == 2
    assert quote.version not in others
    with tenant_scope(kestrel.tenant.pk):
        lines = InvoiceLine.objects.filter(price_version_id=quote.version)
        reported = [explain_invoice_line(line) for line in lines.select_related("invoice", "invoice__period")]
    assert [each.recomputed_equal for each in reported] == [True, True]
    assert {use.fixed for each in reported for use in each.leases} == {
        f"price capped by quote {quote.id} of 2026-11-30 22:59:50 UTC"
    }
    assert sum(each.line.minor for each in reported) <= quote.cap_minor


def test_running_cost_and_reports_use_the_quoted_price(kestrel: TenantContext) -> None:
    with simulate() as sim:
        quote, what = make_quote(kestrel, sim, quantity=2), offering("1g.10gb")
        publish_price(what, 5 * EURO, since=sim.now + timedelta(seconds=1))
        sim.run(2)
        lease = request_quoted_lease(sim, kestrel, quote, quantity=2)
        sim.run(60)
        ran = (sim.now - active_since(lease)).seconds
        with tenant_scope(kestrel.tenant.pk):
            assert spend.hourly_spend(None, kestrel.tenant, now=sim.now) == 2 * EURO
            [cost] = spend.costs_of([lease.pk], now=sim.now).values()
            assert cost.exact_num == 2 * ran * EURO
            assert exact_spend(active_since(lease), sim.now) == cost.exact_num
            assert price_list.quoted_prices([reload_lease(lease)])[lease.pk].nano_per_hour == EURO
        with staff_scope():
            assert earnings.hourly_revenue(now=sim.now) == {"EUR": 2 * EURO}
            assert earnings.hourly_prices_of([lease.pk], now=sim.now) == {lease.pk: (EURO, "EUR")}
            assert earnings.revenue_over((active_since(lease), sim.now)) == [{"EUR": cost.exact_num}]


def test_a_burn_rate_quota_counts_the_quoted_price(kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.BURN, 2 * EURO)
    with simulate() as sim:
        quote = make_quote(kestrel, sim)
        publish_price(offering("1g.10gb"), 5 * EURO, since=sim.now + timedelta(seconds=1))
        sim.run(2)
        with pytest.raises(QuotaExceeded):
            sim.request_lease(kestrel, offering("1g.10gb"))
        lease = request_quoted_lease(sim, kestrel, quote)
        assert kestrel.quota_used(QuotaKind.BURN) == EURO
        sim.run(60)
        with tenant_scope(kestrel.tenant.pk):
            extension.extend_lease(reload_lease(lease), more_s=HOUR, actor=kestrel.actor, now=sim.now)
        assert kestrel.quota_used(QuotaKind.BURN) == EURO


def test_an_extension_keeps_the_quoted_price(kestrel: TenantContext) -> None:
    with simulate() as sim:
        quote = make_quote(kestrel, sim, max_duration_s=HOUR)
        lease = request_quoted_lease(sim, kestrel, quote, max_duration_s=HOUR)
        publish_price(offering("1g.10gb"), 5 * EURO, since=sim.now + timedelta(minutes=30))
        sim.run(60)
        with tenant_scope(kestrel.tenant.pk):
            extension.extend_lease(reload_lease(lease), more_s=HOUR, actor=kestrel.actor, now=sim.now)
        run_and_rate(sim, lease, HOUR + 1800)
    charges = charges_of(kestrel.tenant)
    assert [int(charge.exact_num) for charge in charges] == [charge.unit_seconds * EURO for charge in charges]
    assert sum(charge.unit_seconds for charge in charges) > HOUR


def test_a_quoted_price_is_charged_after_its_price_version_ends(kestrel: TenantContext) -> None:
    """Its last second has no version, but the promised price."""
    with simulate() as sim:
        lease = request_quoted_lease(sim, kestrel, make_quote(kestrel, sim))
        sim.run(60)
        end_all_prices(sim)
        sim.run(60)
        with staff_scope():
            assert [
                p.found for p in invariant_checks.check_invariants(now=sim.now) if p.name == "no unpriced leases"
            ] == [0]
        run_and_rate(sim, lease, HOUR)
        assert lease_rating.rate_all_leases(now=sim.now).gaps == ()
    assert {int(c.exact_num) // c.unit_seconds for c in charges_of(kestrel.tenant)} == {EURO}


def end_all_prices(sim: Simulation) -> None:
    """End every price a moment from now, which the product never does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE billing_priceversion SET valid = tstzrange(lower(valid), %s)",
            [sim.now + timedelta(seconds=1)],
        )


def test_an_unquoted_lease_after_the_price_ends_blocks_charges_of_its_tenant(kestrel: TenantContext) -> None:
    with simulate() as sim:
        cited = request_quoted_lease(sim, kestrel, make_quote(kestrel, sim))
        listed = sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=2 * HOUR)
        sim.run(60)
        end_all_prices(sim)
        sim.run(600)
        for lease in (cited, listed):
            sim.release_lease(reload_lease(lease))
        sim.run(60)
        outcome = lease_rating.rate_all_leases(now=sim.now)
    assert [gap.lease for gap in outcome.gaps] == [listed.pk]
    assert charges_of(kestrel.tenant) == []


def test_a_quote_can_be_used_for_one_lease_only(kestrel: TenantContext) -> None:
    with simulate() as sim:
        quote = make_quote(kestrel, sim)
        first = request_quoted_lease(sim, kestrel, quote)
        with pytest.raises(QuoteUsed, match="A quote can be used once") as refusal:
            request_quoted_lease(sim, kestrel, quote)
    assert refusal.value.fix.href == "/api/v1/quotes"
    assert [(row.pk, row.lease_id) for row in stored_quotes()] == [(quote.id, first.pk)]
    with staff_scope():
        assert Lease.objects.count() == 1


def test_a_refused_lease_does_not_use_up_its_quote(kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.UNITS, 1_000)
    with simulate() as sim:
        quote = make_quote(kestrel, sim)
        holder = sim.request_lease(kestrel, offering("1g.10gb"))
        with pytest.raises(QuotaExceeded):
            request_quoted_lease(sim, kestrel, quote)
        assert stored_quotes() == []
        sim.release_lease(reload_lease(holder))
        sim.run(60)
        assert request_quoted_lease(sim, kestrel, quote).quote_id == quote.id


def test_an_expired_quote_is_refused_with_the_time_since_its_expiry(kestrel: TenantContext, settings: Any) -> None:
    settings.QUOTE_TTL_S = 30
    with simulate() as sim:
        quote = make_quote(kestrel, sim)
        sim.run(29)
        request_quoted_lease(sim, kestrel, quote)
        late = make_quote(kestrel, sim)
        sim.run(70)
        with pytest.raises(QuoteExpired, match="expired 40 s ago"):
            request_quoted_lease(sim, kestrel, late)
        sim.run(120)
        with pytest.raises(QuoteExpired, match="expired 2 min ago"):
            request_quoted_lease(sim, kestrel, late)
    assert len(stored_quotes()) == 1
    assert kestrel.quota_used() == 1000


def test_a_quote_made_during_a_price_change_is_refused_with_the_reason(kestrel: TenantContext) -> None:
    """The quote was made before the next price began."""
    with simulate() as sim:
        before = make_quote(kestrel, sim)
        publish_price(offering("1g.10gb"), 2 * EURO, since=sim.now + timedelta(seconds=1))
        sim.run(2)
        blind = replace(before, made_at=sim.now)
        with pytest.raises(QuoteExpired, match="price changed while"):
            request_quoted_lease(sim, kestrel, blind)
    assert (stored_quotes(), kestrel.quota_used()) == ([], 0)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"quantity": 2}, "quantity 1, not 2"),
        ({"max_duration_s": 3 * HOUR}, "at most 7200 s, not 10800 s"),
        ({"profile": "2g.20gb"}, "offering off_"),
    ],
)
def test_a_quote_for_other_terms_is_refused(kestrel: TenantContext, wanted: dict[str, Any], said: str) -> None:
    with simulate() as sim:
        if profile := wanted.pop("profile", ""):
            wanted["what"] = offering(profile)
        with pytest.raises(QuoteMismatch, match=said):
            request_quoted_lease(sim, kestrel, make_quote(kestrel, sim), **wanted)
    assert stored_quotes() == []


def test_a_quote_can_be_used_for_a_shorter_duration(kestrel: TenantContext) -> None:
    with simulate() as sim:
        assert request_quoted_lease(sim, kestrel, make_quote(kestrel, sim), max_duration_s=HOUR).quote_id


def test_quotes_of_other_tenants_and_projects_are_not_found(kestrel: TenantContext) -> None:
    other_tenant, child = create_tenant("Stranger"), kestrel.create_project("child")
    with simulate() as sim:
        theirs, beside = make_quote(other_tenant, sim), make_quote(kestrel, sim, project=child)
        for quote in (theirs, beside):
            with pytest.raises(UnknownQuote) as refusal:
                request_quoted_lease(sim, kestrel, quote)
            assert refusal.value.detail == "The quote was not found."


def test_altered_and_forged_quotes_are_unknown(kestrel: TenantContext) -> None:
    with simulate() as sim:
        sealed = make_quote(kestrel, sim).sealed
        cheaper = quote_signatures.Signer(salt="gpubroker.quote", key="of somebody else").sign_object([1])
        other_form = quote_signatures._signer().sign_object([2, *range(11)])  # ours, but of another time
        for text in (sealed[:-1], "x" + sealed, "quo_x", "\udfff", cheaper, other_form):
            with pytest.raises(UnknownQuote):
                request_quoted_lease(sim, kestrel, text)
    assert stored_quotes() == []


def test_a_quote_in_a_former_currency_of_the_tenant_is_refused(kestrel: TenantContext) -> None:
    """Nothing was charged yet, so it may; the promise was in euros, and nothing converts."""
    with simulate() as sim:
        quote = make_quote(kestrel, sim)
        with tenant_scope(kestrel.tenant.pk), connection.cursor() as cursor:
            cursor.execute("UPDATE tenants_tenant SET currency = 'USD'")
        with pytest.raises(QuoteMismatch, match="EUR, not USD"):
            request_quoted_lease(sim, kestrel, quote)
    assert stored_quotes() == []


def test_a_quote_is_refused_without_a_gate_that_supports_quotes(kestrel: TenantContext, settings: Any) -> None:
    settings.LEASE_GATES = ("broker.services.quotas.gate",)
    with simulate() as sim, pytest.raises(InvalidValue, match="does not support quotes"):
        request_quoted_lease(sim, kestrel, make_quote(kestrel, sim))


@pytest.mark.parametrize("change", ["UPDATE billing_quote SET nano_per_hour = 0", "DELETE FROM billing_quote"])
def test_a_redeemed_quote_cannot_be_changed_or_deleted(kestrel: TenantContext, change: str) -> None:
    with simulate() as sim:
        request_quoted_lease(sim, kestrel, make_quote(kestrel, sim))
    with (
        tenant_scope(kestrel.tenant.pk),
        pytest.raises(DatabaseError),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)


def test_a_quote_with_an_unpublished_price_is_refused(kestrel: TenantContext) -> None:
    with simulate() as sim:
        quote = make_quote(kestrel, sim)
        for wrong in ({"nano_per_hour": 1}, {"currency": "USD"}, {"made_at": LONG_AGO - timedelta(days=1)}):
            with pytest.raises(QuoteExpired) as refused:
                request_quoted_lease(sim, kestrel, sealed_with(quote, **wrong))
            assert "nobody published" in str(refused.value.__cause__)


def test_other_integrity_errors_are_not_reported_as_price_changes(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = request_quoted_lease(sim, kestrel, make_quote(kestrel, sim))
        lease.quote_token = make_quote(kestrel, sim).sealed  # a second one, for the same lease
        with pytest.raises(IntegrityError, match="lease_id"), tenant_scope(kestrel.tenant.pk):
            redeem_quote(lease, now=sim.now)
    assert [each.pk for each in stored_quotes()] == [lease.quote_id]


def sealed_with(quote: QuoteOffer, **changed: Any) -> str:
    return replace(quote, **changed).sealed


def test_a_price_used_only_by_quotes_can_be_replaced_before_their_charges_end(kestrel: TenantContext) -> None:
    """A promised price is charged past its version, only for this lease."""
    with simulate() as sim:
        lease = request_quoted_lease(sim, kestrel, make_quote(kestrel, sim))
        run_and_rate(sim, lease, HOUR)
        moment = sim.now - timedelta(seconds=600)
        version = price_list.publish_price(
            offering=offering("1g.10gb"),
            currency="EUR",
            nano_per_hour=2 * EURO,
            since=moment,
            actor=OPERATOR,
            now=moment,
        )
    assert version.valid.lower == moment


@pytest.mark.parametrize("seconds", [1, 61, 3599])
def test_the_quoted_cap_is_rounded_half_up_and_the_hold_is_rounded_up(kestrel: TenantContext, seconds: int) -> None:
    with simulate() as sim:
        quote = make_quote(kestrel, sim, max_duration_s=seconds)
    exact = seconds * EURO * 100
    assert quote.cap_minor == (2 * exact + EXACT_PER_UNIT) // (2 * EXACT_PER_UNIT)
    assert quote.hold_minor == -(-exact // EXACT_PER_UNIT)
