"""The portal as people meet it: a server, a hand that does the workers' work, and a tenant with a past."""

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

from billing.gateways.simulated import Ill, SimulatedGateway, suffer
from billing.models import Invoice, InvoiceStatus
from billing.services import closing, crediting, drafts, rating
from billing.services.funds import budgets
from billing.services.payments import collecting, opening
from broker.domain.states import LeaseState
from broker.models import Lease, Volume
from ports import clock, payments
from ports.models import Ring
from tenants.domain.roles import Role
from tenants.models import Member, Project, User
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import price_all
from tests.world import OPERATOR, Home, Life, alive, fleet, home, offering, work

GATEWAY = "billing.gateways.simulated.SimulatedGateway"
PASSWORD = "long enough to be a password"
EMAIL = "mira@kestrel.example"


@dataclass
class Portal:
    """Where it stands, who may come in, and what the browser complained about."""

    url: str
    owner: Home
    user: User
    leases: dict[str, str]
    invoice: str
    declined: str  # the final invoice of a month ago
    volume: str  # one that no lease has
    member: str  # somebody else of the team
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
            "lease that may be stopped": f"/leases/{self.leases['notes']}/",
            "stop": f"/leases/{self.leases['notes']}/stop/",
            "stopped lease": f"/leases/{self.leases['tune']}/",
            "start": f"/leases/{self.leases['tune']}/start/",
            "volumes": "/volumes/",
            "volume to delete": f"/volumes/{self.volume}/delete/",
            "queue": "/queue/",
            "spend": "/spend/",
            "spend by month": "/spend/?by=month&group=project",
            "budgets": "/budgets/",
            "payment": "/payment/",
            "invoices": "/invoices/",
            "billing details": "/invoices/details/",
            "statement": "/statement/",
            "invoice": f"/invoices/{self.invoice}/",
            "invoice whose payment was declined": f"/invoices/{self.declined}/",
            "invoice explained": f"/invoices/{self.invoice}/?line=1",
            "invoice checked": f"/invoices/{self.invoice}/check/",
            "team": "/team/",
            "member": f"/team/members/{self.member}/",
            "projects": "/projects/",
            "project": f"/projects/{self.owner.project.pk}/",
            "tokens": "/tokens/",
            "audit": "/audit/",
            "audit sifted": "/audit/?what=lease.release",
            "account": "/account/",
            "second factors": "/account/security/",
            "password": "/account/password/change/",
        }

    def context(self, browser: Browser, *, signed_in: bool = True, **wishes: object) -> BrowserContext:
        """Open a browser context whose complaints are collected; the event stream is quiet unless routed anew."""
        context = browser.new_context(base_url=self.url, **wishes)  # type: ignore[arg-type]
        if signed_in:
            context.add_cookies([{"name": "sessionid", "value": self.cookie, "url": self.url}])
        context.route("**/api/v1/events", lambda route: stream(route, self.url, ""))
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
        """Do what the beat would have done: charge what has ended, and bring the draft up to it."""
        rating.rate(now=clock.now())
        with as_tenant(self.owner.tenant.pk):
            drafts.refresh(self.owner.tenant, now=clock.now())


def stream(route: Route, origin: str, events: str) -> None:
    """Answer for the event process: these events, then silence."""
    headers = {
        "Content-Type": "text/event-stream",
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
    }
    route.fulfill(headers=headers, body=f"retry: 600000\n\n{events}")


@contextmanager
def served() -> Iterator[Portal]:
    """Serve the portal, with somebody who does what is rung for, until the block ends."""
    portal = peopled()
    server = ThreadedWSGIServer(("127.0.0.1", 0), QuietHandler)
    portal.url = f"http://localhost:{server.server_port}"
    over = threading.Event()
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}),
        threading.Thread(target=hand, args=(over,)),
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
    """A handler that says nothing of what it serves."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def hand(over: threading.Event) -> None:
    """Do what is rung for, as relay and worker together would."""
    while not over.wait(0.1):
        due = Ring.objects.filter(at__lte=clock.now()).order_by("id")
        for ring in due[:50]:
            Ring.objects.filter(pk=ring.pk).delete()
            work(ring.task, ring.subject, ring.tenant_id, now=clock.now())
    connections.close_all()


def peopled() -> Portal:
    """Make the tenant: leases in every state a page shows, two months of charges, somebody signed in."""
    now = clock.now()
    with alive(now - timedelta(days=33)) as life:
        with transaction.atomic():
            fleet(now=life.now)
            price_all()
            owner = home("Kestrel Bio")
        user = owner.member(Role.OWNER)
        user.email, user.name = EMAIL, "Mira Lind"
        user.set_password(PASSWORD)
        user.save()
        EmailAddress.objects.create(user=user, email=EMAIL, verified=True, primary=True)
        owner = replace(owner, actor=Actor("user", user.pk, EMAIL))
        design = owner.child("protein-design")
        past(life, owner, design, now)
        live = {
            "fold": life.lease(
                owner, offering("3g.40gb"), name="fold-batch-21", project=design, max_duration_s=28_800
            ),
            "chat": life.lease(owner, offering("card"), name="chat", quantity=7, max_duration_s=90_000),
            "dock": life.lease(
                owner, offering("1g.10gb", price_class="spot"), name="dock", max_duration_s=4000
            ),
        }
        volume = keeping_things(life, owner, live)
        life.run(600)
        life.stop(live["tune"], owner)
        life.run(5)
        live["waits"] = life.lease(owner, offering("card"), LeaseState.QUEUED, name="sweep-32", quantity=2)
        life.run(2)
        rating.rate(now=life.now)
    with as_tenant(owner.tenant.pk):
        drafts.refresh(owner.tenant, now=now)
        Lease.objects.filter(state="queued").update(due_at=None)
        invoice = Invoice.objects.filter(status=InvoiceStatus.DRAFT).latest("pk")
    declined = in_vain(owner, now)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    ids = {name: lease.pk for name, lease in live.items()}
    other = owner.member(Role.MEMBER)
    owner.token(now=now)
    with as_tenant(owner.tenant.pk):
        member = Member.objects.get(user=other).pk
    cookie = client.cookies["sessionid"].value
    return Portal("", owner, user, ids, invoice.pk, declined, volume.pk, member, cookie)


def in_vain(owner: Home, now: datetime) -> str:
    """Close the month that is over, have its payment declined, and give some of it back."""
    suffer(owner.tenant.pk, Ill.DECLINED)
    with payments.through(SimulatedGateway()):
        closing.close_due(now=now)
        opening.open_due(now=now)
        for _, payment_id, tenant_id in collecting.due(now=now):
            collecting.collect(payment_id, tenant_id, now=now)
    with as_tenant(owner.tenant.pk):
        invoice = Invoice.objects.filter(status=InvoiceStatus.FINALIZED).latest("pk")
    with as_tenant(owner.tenant.pk):
        for project, limit in ((owner.project, 500_000), (Project.objects.exclude(parent=None)[0], 1_000)):
            budgets.set_limit(project=project, limit_minor=limit, actor=owner.actor, now=now)
    crediting.credit(
        invoice, wanted={1: 40}, seen=0, why="its card was slow for an hour", actor=OPERATOR, now=now
    )
    return invoice.pk


def keeping_things(life: Life, owner: Home, live: dict[str, Lease]) -> Volume:
    """Let two leases have volumes, and one volume have no lease."""
    for name, volume in (("notes", "notes-home"), ("tune", "checkpoints")):
        made = life.volume(owner, volume, size_gib=40)
        live[name] = life.lease(
            owner, offering("1g.10gb"), name=name, max_duration_s=28_800, workload="jupyter", volume=made.pk
        )
    return life.volume(owner, "datasets", size_gib=80)


def past(life: Life, owner: Home, project: Project, now: datetime) -> None:
    """Let some leases begin and end on the days before."""
    for n, days in enumerate((32, 30, 21, 14, 9, 6, 4, 3, 2, 1)):
        life.clock.at = now - timedelta(days=days)
        profile = ("1g.10gb", "2g.20gb", "3g.40gb")[n % 3]
        lease = life.lease(
            owner, offering(profile), name=f"job-{n:02d}", project=project, max_duration_s=36_000
        )
        life.run(1800 + 700 * n)
        life.release(lease)
        life.run(10)
    life.clock.at = now - timedelta(minutes=20)
