"""The portal in a browser: server, worker and a tenant with history."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.db import connections, transaction
from django.test import Client, override_settings
from playwright.sync_api import Browser, BrowserContext, Page, Route

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice, InvoiceStatus
from billing.services.funds.budgets import budget_settings
from billing.services.invoicing import credit_notes, drafts
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_collection, payment_creation
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Secret, Volume
from broker.services.secrets import secret_store
from ports import clock, payments
from ports.models import OutboxMessage
from tenants.domain.roles import Role
from tenants.models import Member, Project, User
from tenants.services import ssh_keys
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.architecture.matrix import PUBLIC_KEY
from tests.billing.gateways.faults import inject_faults
from tests.simulation import (
    OPERATOR,
    Simulation,
    TenantContext,
    create_fleet,
    create_tenant,
    offering,
    run_task,
    simulate,
)
from tests.web.portal.signed_in_user import price_all_offerings

GATEWAY = "billing.gateways.simulated.SimulatedGateway"
PASSWORD = "long enough to be a password"
EMAIL = "mira@kestrel.example"


@dataclass
class Portal:
    """A served portal with its users and the browser's complaints."""

    url: str
    owner: TenantContext
    user: User
    leases: dict[str, str]
    invoice: str
    declined: str  # the final invoice of a month ago
    volume: str  # one that no lease has
    member: str  # somebody else of the team
    secret: str  # one that a lease uses
    cookie: str = ""
    complaints: list[str] = field(default_factory=list)

    @property
    def pages(self) -> dict[str, str]:
        """Every page of a tenant, by the name of what it shows."""
        lease = self.leases["fold"]
        return {
            "home": "/?whose=all",
            "catalogue": "/catalogue/",
            "launch": "/launch/",
            "launch refused": "/launch/?count=500&lasts=soon",
            "leases": "/leases/?state=all",
            "no leases": "/leases/?q=none-is-called-so",
            "lease": f"/leases/{lease}/",
            "lease in the queue": f"/leases/{self.leases['waits']}/",
            "extend": f"/leases/{lease}/extend/",
            "release": f"/leases/{lease}/release/",
            "end of a lease": f"/leases/{lease}/end-terms/",
            "logs": f"/leases/{lease}/logs/",
            "approvals": "/approvals/",
            "schedules": "/schedules/",
            "terminal of a queued lease": f"/leases/{self.leases['waits']}/terminal/",
            "lease that may be stopped": f"/leases/{self.leases['notes']}/",
            "stop": f"/leases/{self.leases['notes']}/stop/",
            "stopped lease": f"/leases/{self.leases['tune']}/",
            "start": f"/leases/{self.leases['tune']}/start/",
            "volumes": "/volumes/",
            "volume to delete": f"/volumes/{self.volume}/delete/",
            "secrets": "/secrets/",
            "secret to replace": f"/secrets/{self.secret}/replace/",
            "secret to delete": f"/secrets/{self.secret}/delete/",
            "templates": "/templates/",
            "new template": "/templates/new/",
            "queue": "/queue/",
            "spend": "/spend/",
            "spend by month": "/spend/?by=month&group=project",
            "budgets": "/budgets/",
            "payment": "/payment-method/",
            "invoices": "/invoices/",
            "billing details": "/billing-details/",
            "statement": "/statement/",
            "invoice": f"/invoices/{self.invoice}/",
            "invoice whose payment was declined": f"/invoices/{self.declined}/",
            "invoice explained": f"/invoices/{self.invoice}/?line=1",
            "invoice checked": f"/invoices/{self.invoice}/verification/",
            "team": "/team/",
            "member": f"/team/members/{self.member}/",
            "projects": "/projects/",
            "project": f"/projects/{self.owner.project.pk}/",
            "tokens": "/tokens/",
            "audit": "/audit/",
            "audit sifted": "/audit/?what=lease.release",
            "account": "/account/",
            "SSH keys": "/account/ssh-keys/",
            "second factors": "/account/security/",
            "password": "/account/password/change/",
            "help": "/help/",
            "API reference": "/api-reference/",
        }

    def context(self, browser: Browser, *, signed_in: bool = True, **options: object) -> BrowserContext:
        """Open a context that collects complaints, with a quiet event stream."""
        context = browser.new_context(base_url=self.url, **options)  # type: ignore[arg-type]
        if signed_in:
            context.add_cookies([{"name": "sessionid", "value": self.cookie, "url": self.url}])
        for streamed in ("**/api/v1/events/stream", "**/api/v1/events/logs/*"):
            context.route(streamed, lambda route: stream(route, self.url, ""))
        context.on("page", self._listen)
        self.complaints.clear()
        return context

    def _listen(self, page: Page) -> None:
        page.on("console", lambda said: self._complain(said.type, said.text))
        page.on("pageerror", lambda error: self._complain("error", str(error)))

    def _complain(self, kind: str, words: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(words)

    def bill(self) -> None:
        """Rate ended usage and refresh the draft."""
        lease_rating.rate_all_leases(now=clock.now())
        with tenant_scope(self.owner.tenant.pk):
            drafts.refresh_drafts(self.owner.tenant, now=clock.now())


def stream(route: Route, origin: str, events: str) -> None:
    """Fake the event process: send these events, then close the stream."""
    headers = {
        "Content-Type": "text/event-stream",
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
    }
    retry = "" if "retry:" in events else "retry: 600000\n\n"
    route.fulfill(headers=headers, body=retry + events)


@contextmanager
def serve_portal(portal: Portal) -> Iterator[Portal]:
    """Serve the portal and run outbox messages until the block ends."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), QuietHandler)
    portal.url = f"http://localhost:{server.server_port}"
    over = threading.Event()
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}),
        threading.Thread(target=run_outbox, args=(over,)),
    ]
    with override_settings(
        PUBLIC_URL=portal.url, CSRF_TRUSTED_ORIGINS=[portal.url], SIMULATED_SPEED=4, PAYMENT_GATEWAY=GATEWAY
    ):
        server.set_app(get_wsgi_application())  # its parts read the settings when they are made
        for thread in threads:
            thread.start()
        try:
            yield portal
        finally:
            over.set()
            server.shutdown()
            for thread in threads:
                thread.join()
            server.server_close()
            connections.close_all()


class QuietHandler(WSGIRequestHandler):
    """Request handler without a log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def run_outbox(over: threading.Event) -> None:
    """Run enqueued messages, as relay and worker together would."""
    while not over.wait(0.1):
        due = OutboxMessage.objects.filter(at__lte=clock.now()).order_by("id")
        for message in due[:50]:
            OutboxMessage.objects.filter(pk=message.pk).delete()
            run_task(message.task, message.subject, message.tenant_id, now=clock.now())
    connections.close_all()


def create_portal_data() -> Portal:
    """Create a tenant with leases in every state and two months of charges."""
    now = clock.now()
    with simulate(now - timedelta(days=33)) as sim:
        with transaction.atomic():
            create_fleet(now=sim.now)
            price_all_offerings()
            owner = create_tenant("Kestrel Bio")
        user = owner.create_member(Role.OWNER)
        user.email, user.name = EMAIL, "Mira Lind"
        user.set_password(PASSWORD)
        user.save()
        EmailAddress.objects.create(user=user, email=EMAIL, verified=True, primary=True)
        owner = replace(owner, actor=Actor("user", user.pk, EMAIL))
        design = owner.create_project("protein-design")
        add_ended_leases(sim, owner, design, now)
        secret = add_saved_choices(sim, owner)
        live = {
            "fold": sim.create_lease(
                owner, offering("3g.40gb"), name="fold-batch-21", project=design, max_duration_s=28_800
            ),
            "chat": sim.create_lease(owner, offering("whole-gpu"), name="chat", quantity=7, max_duration_s=90_000),
            "dock": sim.create_lease(
                owner,
                offering("1g.10gb", price_class="spot"),
                name="dock",
                max_duration_s=4000,
                secrets={"HF_TOKEN": secret.pk},
            ),
        }
        volume = add_volumes(sim, owner, live)
        sim.run(600)
        sim.stop_lease(live["tune"], owner)
        sim.run(5)
        live["waits"] = sim.create_lease(owner, offering("whole-gpu"), LeaseState.QUEUED, name="sweep-32", quantity=2)
        sim.run(2)
        lease_rating.rate_all_leases(now=sim.now)
    with tenant_scope(owner.tenant.pk):
        drafts.refresh_drafts(owner.tenant, now=now)
        Lease.objects.filter(state="queued").update(due_at=None)
        invoice = Invoice.objects.filter(status=InvoiceStatus.DRAFT).latest("pk")
    declined = decline_last_month(owner, now)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    ids = {name: lease.pk for name, lease in live.items()}
    other = owner.create_member(Role.MEMBER)
    owner.token(now=now)
    with tenant_scope(owner.tenant.pk):
        member = Member.objects.get(user=other).pk
    cookie = client.cookies["sessionid"].value
    return Portal("", owner, user, ids, invoice.pk, declined, volume.pk, member, secret.pk, cookie)


def decline_last_month(owner: TenantContext, now: datetime) -> str:
    """Close last month, decline its payment, and credit a part."""
    inject_faults(owner.tenant.pk, GatewayFault.DECLINED)
    with payments.using_gateway(SimulatedGateway()):
        close_month.close_due_months(now=now)
        payment_creation.open_due_payments(now=now)
        for _, payment_id, tenant_id in payment_collection.PAYMENTS.due(now=now):
            payment_collection.PAYMENTS.collect(payment_id, tenant_id, now=now)
    with tenant_scope(owner.tenant.pk):
        invoice = Invoice.objects.filter(status=InvoiceStatus.FINALIZED).latest("pk")
    with tenant_scope(owner.tenant.pk):
        for project, limit in ((owner.project, 500_000), (Project.objects.exclude(parent=None)[0], 1_000)):
            budget_settings.set_budget(project=project, limit_minor=limit, actor=owner.actor, now=now)
    credit_notes.issue_credit_note(
        invoice, wanted={1: 40}, seen=0, why="its GPU was slow for an hour", actor=OPERATOR, now=now
    )
    return invoice.pk


def add_saved_choices(sim: Simulation, owner: TenantContext) -> Secret:
    """Save an SSH key and two secrets; return the one that a lease will use."""
    ssh_keys.add_key(name="laptop", public_key=PUBLIC_KEY, actor=owner.actor, now=sim.now)
    with tenant_scope(owner.tenant.pk):
        secret, _ = (
            secret_store.create_secret(project=owner.project, name=name, value="v", actor=owner.actor, now=sim.now)
            for name in ("HF_TOKEN", "WANDB_API_KEY")
        )
    return secret


def add_volumes(sim: Simulation, owner: TenantContext, live: dict[str, Lease]) -> Volume:
    """Let two leases have volumes, and one volume have no lease."""
    for name, volume in (("notes", "notes-home"), ("tune", "checkpoints")):
        made = sim.create_volume(owner, volume, size_gib=40)
        live[name] = sim.create_lease(
            owner, offering("1g.10gb"), name=name, max_duration_s=28_800, workload="jupyter", volume=made.pk
        )
    return sim.create_volume(owner, "datasets", size_gib=80)


def add_ended_leases(sim: Simulation, owner: TenantContext, project: Project, now: datetime) -> None:
    """Let some leases begin and end on the days before."""
    for n, days in enumerate((32, 30, 21, 14, 9, 6, 4, 3, 2, 1)):
        sim.clock.at = now - timedelta(days=days)
        profile = ("1g.10gb", "2g.20gb", "3g.40gb")[n % 3]
        lease = sim.create_lease(owner, offering(profile), name=f"job-{n:02d}", project=project, max_duration_s=36_000)
        sim.run(1800 + 700 * n)
        sim.release_lease(lease)
        sim.run(10)
    sim.clock.at = now - timedelta(minutes=20)
