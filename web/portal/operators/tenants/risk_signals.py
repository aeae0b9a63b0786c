"""Facts about a tenant that an operator should look at before granting more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from billing.domain.money import Money
from billing.models import Dispute, DisputeStatus, Invoice, InvoiceStatus, Payment, PaymentDispute, PaymentStatus
from billing.services.reports.spend_rates import SpendRates
from tenants.models import Tenant
from web.portal.projects.quota_fields import QuotaField
from web.ui import formatting

DECLINED_DAYS = 30
SUDDEN_FACTOR = 3  # times the usual spend rate
NEARLY_FULL_PERCENT = 90
YOUNG = timedelta(days=30)
CLOSED_CARD_DISPUTES = ("won", "lost", "warning_closed", "charge_refunded", "prevented")


@dataclass(frozen=True, slots=True)
class RiskSignal:
    """One fact: what it says, whether it asks for attention, and where it is explained."""

    name: str
    text: str
    raised: bool
    url: str = ""


def overdue_signal(tenant: Tenant, owed: Sequence[Money], since: datetime | None, *, now: datetime) -> RiskSignal:
    """Return whether final invoices are past their due date."""
    url = f"{reverse('ops-invoices')}?tenant={tenant.pk}"
    if since is None:
        return RiskSignal(_("Unpaid invoices"), _("none is overdue"), raised=False, url=url)
    days = max((now - since).days, 0)
    text = ngettext("{amount}, {n} day overdue", "{amount}, {n} days overdue", days).format(
        amount=" + ".join(str(each) for each in owed), n=days
    )
    return RiskSignal(_("Unpaid invoices"), text, raised=True, url=url)


def declined_signal(tenant: Tenant, *, now: datetime) -> RiskSignal:
    """Return whether payments were declined lately."""
    recent = Payment.objects.filter(tenant=tenant, opened_at__gte=now - timedelta(days=DECLINED_DAYS))
    count = recent.filter(status=PaymentStatus.DECLINED).count()
    text = _("{n} in the last {days} days") if count else _("none in the last {days} days")
    text = text.format(n=count, days=DECLINED_DAYS)
    return RiskSignal(_("Declined payments"), text, raised=bool(count))


def spend_rate_signal(burn: int, rates: SpendRates, currency: str) -> RiskSignal:
    """Return whether the spend rate is far above last week's usual one."""
    name, usual = _("Spend rate"), rates.usual
    now_text = _("{price}/h").format(price=formatting.format_price(burn, currency))
    if not usual:
        return RiskSignal(name, _("{now}; nothing to compare with yet").format(now=now_text), raised=False)
    times = f"{burn / usual:.1f}"
    text = _("{times} × the usual {price}/h").format(times=times, price=formatting.format_price(usual, currency))
    return RiskSignal(name, text, raised=burn >= SUDDEN_FACTOR * usual)


def quota_signal(quotas: Sequence[QuotaField]) -> RiskSignal:
    """Return the quota of the tenant that is used most."""
    limited = [each for each in quotas if each.limit]
    if not limited:
        return RiskSignal(_("Quotas"), _("the tenant has none"), raised=True)
    fullest = max(limited, key=lambda each: each.used_count / each.bar_limit)
    percent = 100 * fullest.used_count // fullest.bar_limit
    text = _("{name}: {percent} % used").format(name=fullest.name, percent=percent)
    return RiskSignal(_("Quotas"), text, raised=percent >= NEARLY_FULL_PERCENT)


def dispute_signal(tenant: Tenant) -> RiskSignal:
    """Return whether the tenant, or a cardholder at the bank, disputes something."""
    lines = Dispute.objects.filter(tenant=tenant, status=DisputeStatus.OPEN).count()
    cards = PaymentDispute.objects.filter(tenant=tenant).exclude(status__in=CLOSED_CARD_DISPUTES).count()
    found = [
        ngettext("{n} of invoice lines", "{n} of invoice lines", lines).format(n=lines) if lines else "",
        ngettext("{n} of card payments", "{n} of card payments", cards).format(n=cards) if cards else "",
    ]
    text = ", ".join(each for each in found if each) or _("none is open")
    url = f"{reverse('ops-disputes')}?tenant={tenant.pk}"
    return RiskSignal(_("Disputes"), text, raised=bool(lines or cards), url=url)


def age_signal(tenant: Tenant, *, now: datetime) -> RiskSignal:
    """Return whether the tenant is new, and how many invoices it has paid."""
    paid = Invoice.objects.filter(Q(status=InvoiceStatus.PAID), tenant=tenant).count()
    age = now - tenant.created_at
    since = ngettext("{n} day old", "{n} days old", age.days).format(n=age.days)
    bills = ngettext("{n} invoice paid", "{n} invoices paid", paid).format(n=paid)
    if tenant.is_new:
        return RiskSignal(
            _("New tenant"), _("not released yet; {since}, {bills}").format(since=since, bills=bills), raised=True
        )
    return RiskSignal(_("New tenant"), f"{since}, {bills}", raised=age < YOUNG and not paid)
