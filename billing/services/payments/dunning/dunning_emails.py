"""Dunning e-mails to the billing contacts."""

from django.conf import settings

from billing.domain.dunning import DunningAction
from billing.domain.money import Money
from billing.models import BillingDetails, Invoice
from ports import mail
from tenants.domain.roles import Role
from tenants.models import Member, Tenant

EMAIL_TEXT = """{due} of invoice {invoice} for {month} is overdue. Payment was due on {day}.

{then}

See the invoice and pay it:
{link}
"""
CONSEQUENCES = {
    DunningAction.REMIND: (
        "All services of {tenant} continue. If you have paid within the last days, ignore this e-mail."
    ),
    DunningAction.SUSPEND: "Until it is paid, {tenant} cannot start new leases. Running leases continue.",
    DunningAction.END: "The running leases of {tenant} were ended today. Volumes are kept.",
}
SUBJECTS = {
    DunningAction.REMIND: "Invoice {invoice} is overdue",
    DunningAction.SUSPEND: "Invoice {invoice} is overdue: new leases are blocked",
    DunningAction.END: "Invoice {invoice} is overdue: leases were ended",
}


def email_overdue(tenant: Tenant, invoice: Invoice, action: DunningAction, *, minor: int) -> None:
    """E-mail about an overdue amount after the transaction commits; needs the invoice's period."""
    text = EMAIL_TEXT.format(
        due=Money(minor, invoice.currency),
        invoice=invoice,
        month=invoice.month,
        day=f"{invoice.due_at:%d %B %Y}",
        then=CONSEQUENCES[action].format(tenant=tenant.name),
        link=f"{settings.PUBLIC_URL.rstrip('/')}/invoices/{invoice.pk}/",
    )
    for address in billing_contacts(tenant):
        mail.send_after_commit(to=address, subject=SUBJECTS[action].format(invoice=invoice), text=text)


def billing_contacts(tenant: Tenant) -> list[str]:
    """Return the billing contacts: the billing e-mail address, owners and billing members."""
    addresses = BillingDetails.objects.filter(tenant=tenant).exclude(email="").values_list("email", flat=True)
    members = Member.objects.filter(
        tenant=tenant, user__is_active=True, project=None, role__in=[Role.OWNER, Role.BILLING]
    )
    return sorted({*addresses, *members.values_list("user__email", flat=True)})
