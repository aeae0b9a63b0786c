"""A quote is a price that stays: cited once, in time, for what it was made for, and then charged whatever happens."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from billing.domain.money import EXACT_PER_UNIT
from billing.models import InvoiceLine, PriceVersion, Quote
from billing.services import drafts, earnings, prices, proofs, rating, sealing, spend
from billing.services.citing import QuoteExpired, QuoteMismatch, QuoteUsed, cite
from billing.services.explain import explain
from billing.services.sealing import Offer, UnknownQuote
from broker.models import Lease, Offering
from broker.services.leases import growing
from config.operator import Operator
from tenants.models import Project, QuotaKind
from tenants.services.refusals import Invalid, QuotaExceeded
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, LONG_AGO, OPERATOR, charges, exactly
from tests.world import NOW, Home, Life, alive, fleet, fresh, home, offering

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel(settings: Any) -> Home:
    settings.LEASE_GATES = Operator.model_fields["lease_gates"].default
    fleet()
    for profile in ("1g.10gb", "2g.20gb"):
        priced(offering(profile), EURO, since=LONG_AGO)
    return home("Kestrel")


def priced(what: Offering, nano: int, *, since: datetime) -> PriceVersion:
    return prices.publish(
        offering=what,
        currency="EUR",
        nano_per_hour=nano,
        since=since,
        actor=OPERATOR,
        now=min(since, NOW),
    )


def quoted(owner: Home, life: Life, *, project: Project | None = None, **terms: Any) -> Offer:
    """Promise this moment's price of the smallest slice."""
    price = prices.of(offering("1g.10gb"), currency="EUR", moment=life.now)
    asked = {"quantity": 1, "max_duration_s": 2 * HOUR, **terms}
    return sealing.offer(price, project=project or owner.project, now=life.now, **asked)


def ask(life: Life, owner: Home, quote: Offer | str, **wanted: Any) -> Lease:
    sealed = quote if isinstance(quote, str) else quote.sealed
    asked = {"max_duration_s": 2 * HOUR, **wanted}
    return life.ask(owner, asked.pop("what", offering("1g.10gb")), quote=sealed, **asked)


def live(life: Life, lease: Lease, seconds: int) -> Lease:
    """Let a lease become active, run so long and end, and have it charged."""
    life.run(60)
    life.run(seconds - (life.now - active(lease)).total_seconds())
    life.release(fresh(lease))
    life.run(60)
    rating.rate(now=life.now)
    return fresh(lease)


def active(lease: Lease) -> datetime:
    since = fresh(lease).active_at
    assert since is not None
    return since


def kept() -> list[Quote]:
    with as_staff():
        return list(Quote.objects.all())


def test_b40_the_price_that_was_shown_is_the_price_that_is_charged(kestrel: Home) -> None:
    """It rises between quote and launch, and again while the lease runs, across a month's end at that."""
    with alive(datetime(2026, 11, 30, 22, 59, 50, tzinfo=UTC)) as life:
        quote, what = quoted(kestrel, life), offering("1g.10gb")
        assert (quote.nano_per_hour, quote.hold_minor, quote.cap_minor) == (EURO, 200, 200)
        priced(what, 3 * EURO, since=life.now + timedelta(seconds=5))
        priced(what, 7 * EURO, since=life.now + timedelta(minutes=70))
        life.run(10)
        assert prices.of(what, currency="EUR", moment=life.now).nano_per_hour == 3 * EURO
        cited, listed = ask(life, kestrel, quote), life.ask(kestrel, what, max_duration_s=2 * HOUR)
        begun = [live(life, lease, 2 * HOUR - 600) for lease in (cited, listed)]
        assert [lease.quote_id for lease in begun] == [quote.id, ""]
        drafts.refresh(kestrel.tenant, now=life.now)
    mine = [charge for charge in charges(kestrel.tenant) if charge.lease_id == cited.pk]
    assert {charge.price_version_id for charge in mine} == {quote.version}
    assert len(mine) == 2, "a month's end cuts it, a new price does not"
    assert sum(int(c.exact_num) for c in mine) == sum(c.unit_seconds for c in mine) * EURO
    others = {c.price_version_id for c in charges(kestrel.tenant) if c.lease_id == listed.pk}
    assert len(others) == 2
    assert quote.version not in others
    with as_tenant(kestrel.tenant.pk):
        lines = InvoiceLine.objects.filter(price_version_id=quote.version)
        told = [explain(line) for line in lines.select_related("invoice", "invoice__period")]
    assert [each.recomputed_equal for each in told] == [True, True]
    assert {use.fixed for each in told for use in each.leases} == {
        f"price fixed by quote {quote.id} of 2026-11-30 22:59:50 UTC"
    }
    assert sum(each.line.minor for each in told) <= quote.cap_minor


def test_it_shows_its_own_price_while_it_runs(kestrel: Home) -> None:
    with alive() as life:
        quote, what = quoted(kestrel, life, quantity=2), offering("1g.10gb")
        priced(what, 5 * EURO, since=life.now + timedelta(seconds=1))
        life.run(2)
        lease = ask(life, kestrel, quote, quantity=2)
        life.run(60)
        ran = (life.now - active(lease)).seconds
        with as_tenant(kestrel.tenant.pk):
            assert spend.burning(None, kestrel.tenant, now=life.now) == 2 * EURO
            [cost] = spend.costs([lease.pk], now=life.now).values()
            assert cost.exact_num == 2 * ran * EURO
            assert exactly(active(lease), life.now) == cost.exact_num
            assert prices.promised([fresh(lease)])[lease.pk].nano_per_hour == EURO
        with as_staff():
            assert earnings.now_per_hour(now=life.now) == {"EUR": 2 * EURO}
            assert earnings.of_leases([lease.pk], now=life.now) == {lease.pk: (EURO, "EUR")}
            assert earnings.over((active(lease), life.now)) == [{"EUR": cost.exact_num}]


def test_a_burn_quota_counts_the_price_that_was_promised(kestrel: Home) -> None:
    kestrel.quota(QuotaKind.BURN, 2 * EURO)
    with alive() as life:
        quote = quoted(kestrel, life)
        priced(offering("1g.10gb"), 5 * EURO, since=life.now + timedelta(seconds=1))
        life.run(2)
        with pytest.raises(QuotaExceeded):
            life.ask(kestrel, offering("1g.10gb"))
        lease = ask(life, kestrel, quote)
        assert kestrel.used(QuotaKind.BURN) == EURO
        life.run(60)
        with as_tenant(kestrel.tenant.pk):
            growing.extend(fresh(lease), more_s=HOUR, actor=kestrel.actor, now=life.now)
        assert kestrel.used(QuotaKind.BURN) == EURO


def test_an_extension_costs_the_same(kestrel: Home) -> None:
    with alive() as life:
        quote = quoted(kestrel, life, max_duration_s=HOUR)
        lease = ask(life, kestrel, quote, max_duration_s=HOUR)
        priced(offering("1g.10gb"), 5 * EURO, since=life.now + timedelta(minutes=30))
        life.run(60)
        with as_tenant(kestrel.tenant.pk):
            growing.extend(fresh(lease), more_s=HOUR, actor=kestrel.actor, now=life.now)
        live(life, lease, HOUR + 1800)
    [charge] = charges(kestrel.tenant)
    assert int(charge.exact_num) == charge.unit_seconds * EURO
    assert charge.unit_seconds > HOUR


def test_a_quote_outlives_the_price_it_is_of(kestrel: Home) -> None:
    """No version covers its last second any more: it has a price all the same, and no proof says otherwise."""
    with alive() as life:
        lease = ask(life, kestrel, quoted(kestrel, life))
        life.run(60)
        end_of_sale(life)
        life.run(60)
        with as_staff():
            assert [p.found for p in proofs.check(now=life.now) if p.name == "nothing runs unpriced"] == [0]
        live(life, lease, HOUR)
        assert rating.rate(now=life.now).gaps == ()
    assert [int(c.exact_num) // c.unit_seconds for c in charges(kestrel.tenant)] == [EURO]


def end_of_sale(life: Life) -> None:
    """Close every price there is a moment from now, as nothing of the product does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE billing_priceversion SET valid = tstzrange(lower(valid), %s)",
            [life.now + timedelta(seconds=1)],
        )


def test_without_a_quote_the_same_is_a_gap_and_nothing_of_the_tenant_is_charged(kestrel: Home) -> None:
    with alive() as life:
        cited = ask(life, kestrel, quoted(kestrel, life))
        listed = life.ask(kestrel, offering("1g.10gb"), max_duration_s=2 * HOUR)
        life.run(60)
        end_of_sale(life)
        life.run(600)
        for lease in (cited, listed):
            life.release(fresh(lease))
        life.run(60)
        outcome = rating.rate(now=life.now)
    assert [gap.lease for gap in outcome.gaps] == [listed.pk]
    assert charges(kestrel.tenant) == []


def test_a_quote_is_for_one_lease(kestrel: Home) -> None:
    with alive() as life:
        quote = quoted(kestrel, life)
        first = ask(life, kestrel, quote)
        with pytest.raises(QuoteUsed, match="a quote is for one") as refusal:
            ask(life, kestrel, quote)
    assert refusal.value.fix.href == "/api/v1/quotes"
    assert [(row.pk, row.lease_id) for row in kept()] == [(quote.id, first.pk)]
    with as_staff():
        assert Lease.objects.count() == 1


def test_a_refused_lease_leaves_its_quote_to_another(kestrel: Home) -> None:
    kestrel.quota(QuotaKind.UNITS, 1_000)
    with alive() as life:
        quote = quoted(kestrel, life)
        holder = life.ask(kestrel, offering("1g.10gb"))
        with pytest.raises(QuotaExceeded):
            ask(life, kestrel, quote)
        assert kept() == []
        life.release(fresh(holder))
        life.run(60)
        assert ask(life, kestrel, quote).quote_id == quote.id


def test_a_quote_that_ended_holds_nothing_and_says_since_when(kestrel: Home, settings: Any) -> None:
    settings.QUOTE_LASTS_S = 30
    with alive() as life:
        quote = quoted(kestrel, life)
        life.run(29)
        ask(life, kestrel, quote)
        late = quoted(kestrel, life)
        life.run(70)
        with pytest.raises(QuoteExpired, match="ended 40 s ago"):
            ask(life, kestrel, late)
        life.run(120)
        with pytest.raises(QuoteExpired, match="ended 2 min ago"):
            ask(life, kestrel, late)
    assert len(kept()) == 1
    assert kestrel.used() == 1000


def test_a_quote_made_while_another_price_was_being_published_is_refused_in_words(kestrel: Home) -> None:
    """Who made it could not see yet that the next price had begun; who is asked to keep it can."""
    with alive() as life:
        before = quoted(kestrel, life)
        priced(offering("1g.10gb"), 2 * EURO, since=life.now + timedelta(seconds=1))
        life.run(2)
        blind = replace(before, made_at=life.now)
        with pytest.raises(QuoteExpired, match="price changed in the moment"):
            ask(life, kestrel, blind)
    assert (kept(), kestrel.used()) == ([], 0)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"quantity": 2}, "quantity 1, not 2"),
        ({"max_duration_s": 3 * HOUR}, "at most 7200 s, not 10800 s"),
        ({"profile": "2g.20gb"}, "offering off_"),
    ],
)
def test_a_quote_of_something_else_is_refused(kestrel: Home, wanted: dict[str, Any], said: str) -> None:
    with alive() as life:
        if profile := wanted.pop("profile", ""):
            wanted["what"] = offering(profile)
        with pytest.raises(QuoteMismatch, match=said):
            ask(life, kestrel, quoted(kestrel, life), **wanted)
    assert kept() == []


def test_less_time_than_was_quoted_is_fine(kestrel: Home) -> None:
    with alive() as life:
        assert ask(life, kestrel, quoted(kestrel, life), max_duration_s=HOUR).quote_id


def test_quotes_of_others_are_as_good_as_none(kestrel: Home) -> None:
    stranger, child = home("Stranger"), kestrel.child("child")
    with alive() as life:
        theirs, beside = quoted(stranger, life), quoted(kestrel, life, project=child)
        for quote in (theirs, beside):
            with pytest.raises(UnknownQuote) as refusal:
                ask(life, kestrel, quote)
            assert refusal.value.detail == "There is no such quote here."


def test_what_was_changed_or_never_ours_is_none(kestrel: Home) -> None:
    with alive() as life:
        sealed = quoted(kestrel, life).sealed
        cheaper = sealing.Signer(salt="gpubroker.quote", key="of somebody else").sign_object([1])
        other_form = sealing._signer().sign_object([2, *range(11)])  # ours, but of another time
        for text in (sealed[:-1], "x" + sealed, "quo_x", "\udfff", cheaper, other_form):
            with pytest.raises(UnknownQuote):
                ask(life, kestrel, text)
    assert kept() == []


def test_a_tenant_that_counts_in_another_currency_meanwhile_has_the_price_of_that(kestrel: Home) -> None:
    """Nothing was charged yet, so it may; the promise was in euros, and nothing converts."""
    with alive() as life:
        quote = quoted(kestrel, life)
        with as_tenant(kestrel.tenant.pk), connection.cursor() as cursor:
            cursor.execute("UPDATE tenants_tenant SET currency = 'USD'")
        with pytest.raises(QuoteMismatch, match="EUR, not USD"):
            ask(life, kestrel, quote)
    assert kept() == []


def test_where_no_gate_keeps_quotes_none_is_taken_silently(kestrel: Home, settings: Any) -> None:
    settings.LEASE_GATES = ("broker.services.quotas.gate",)
    with alive() as life, pytest.raises(Invalid, match="keeps quotes"):
        ask(life, kestrel, quoted(kestrel, life))


@pytest.mark.parametrize(
    "change", ["UPDATE billing_quote SET nano_per_hour = 0", "DELETE FROM billing_quote"]
)
def test_a_quote_never_changes(kestrel: Home, change: str) -> None:
    with alive() as life:
        ask(life, kestrel, quoted(kestrel, life))
    with (
        as_tenant(kestrel.tenant.pk),
        pytest.raises(DatabaseError),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)


def test_nobody_is_promised_a_price_that_was_never_published(kestrel: Home) -> None:
    with alive() as life:
        quote = quoted(kestrel, life)
        for wrong in ({"nano_per_hour": 1}, {"currency": "USD"}, {"made_at": LONG_AGO - timedelta(days=1)}):
            with pytest.raises(QuoteExpired) as refused:
                ask(life, kestrel, sealed_as(quote, **wrong))
            assert "nobody published" in str(refused.value.__cause__)


def test_what_else_the_database_refuses_is_no_change_of_price(kestrel: Home) -> None:
    with alive() as life:
        lease = ask(life, kestrel, quoted(kestrel, life))
        lease.cites = quoted(kestrel, life).sealed  # a second one, for the same lease
        with pytest.raises(IntegrityError, match="lease_id"), as_tenant(kestrel.tenant.pk):
            cite(lease, now=life.now)
    assert [each.pk for each in kept()] == [lease.quote_id]


def sealed_as(quote: Offer, **changed: Any) -> str:
    return replace(quote, **changed).sealed


def test_a_closed_price_that_only_quotes_use_may_be_followed_at_once(kestrel: Home) -> None:
    """What a quote promised is charged beyond the end of the version; that fixes nothing for others."""
    with alive() as life:
        lease = ask(life, kestrel, quoted(kestrel, life))
        live(life, lease, HOUR)
        moment = life.now - timedelta(seconds=600)
        version = prices.publish(
            offering=offering("1g.10gb"),
            currency="EUR",
            nano_per_hour=2 * EURO,
            since=moment,
            actor=OPERATOR,
            now=moment,
        )
    assert version.valid.lower == moment


@pytest.mark.parametrize("seconds", [1, 61, 3599])
def test_the_cap_is_rounded_as_a_line_and_the_hold_up(kestrel: Home, seconds: int) -> None:
    with alive() as life:
        quote = quoted(kestrel, life, max_duration_s=seconds)
    exact = seconds * EURO * 100
    assert quote.cap_minor == (2 * exact + EXACT_PER_UNIT) // (2 * EXACT_PER_UNIT)
    assert quote.hold_minor == -(-exact // EXACT_PER_UNIT)
