"""Letters about what is overdue, to whoever pays."""

from django.conf import settings

from billing.domain.dunning import Action
from billing.domain.money import Money
from billing.models import BillingDetails, Invoice
from ports import mail
from tenants.domain.roles import Role
from tenants.models import Member, Tenant

LETTER = """{due} of invoice {invoice} for {month} are still to be paid. They were due on {day}.

{then}

See the invoice and pay it:
{link}
"""
THEN = {
    Action.REMIND: "Everything of {tenant} goes on as it does. If you have paid within the last days, never mind.",
    Action.SUSPEND: "Until it is paid nothing new of {tenant} begins; what runs goes on.",
    Action.END: "What ran of {tenant} was ended today. Volumes are kept.",
}
SUBJECT = {
    Action.REMIND: "Invoice {invoice} is overdue",
    Action.SUSPEND: "Invoice {invoice} is overdue: nothing new begins",
    Action.END: "Invoice {invoice} is overdue: what ran was ended",
}


def write(tenant: Tenant, invoice: Invoice, action: Action, *, minor: int) -> None:
    """Write, of so much, once the surrounding transaction has committed. Needs the invoice's period."""
    text = LETTER.format(
        due=Money(minor, invoice.currency),
        invoice=invoice,
        month=invoice.month,
        day=f"{invoice.due_at:%d %B %Y}",
        then=THEN[action].format(tenant=tenant.name),
        link=f"{settings.PUBLIC_URL.rstrip('/')}/invoices/{invoice.pk}/",
    )
    for address in concerned(tenant):
        mail.send(to=address, subject=SUBJECT[action].format(invoice=invoice), text=text)


def concerned(tenant: Tenant) -> list[str]:
    """Return where letters about money go: the address for invoices, and whoever owns or pays for the tenant."""
    told = BillingDetails.objects.filter(tenant=tenant).exclude(email="").values_list("email", flat=True)
    members = Member.objects.filter(
        tenant=tenant, user__is_active=True, project=None, role__in=[Role.OWNER, Role.BILLING]
    )
    return sorted({*told, *members.values_list("user__email", flat=True)})
