"""Asking for a lease: judged by every gate, then queued, all in one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from broker.domain.moves import stays
from broker.domain.placement.topology import ASKED
from broker.domain.profiles import ProfileKind
from broker.domain.states import Isolation
from broker.models import Lease, Offering, OfferingState
from broker.services import capacity, gates
from broker.services.catalogue import profile_of
from broker.services.leases import vetting
from broker.services.leases.opening import open_queued
from broker.services.placement.seating import NEAR
from broker.services.volumes import mounting
from ports import database, doorbell
from tenants.domain.text import is_name
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.quotas import hold_off_new
from tenants.services.refusals import Fix, Invalid, Missing, Refused

MAX_QUANTITY = 512
MIN_DURATION_S = 60
FARTHEST = timedelta(days=5 * 365)  # a fixed end beyond it is a slip of the pen, and some day no date at all
# By hand, for it stands in every request: the ORM would take twice as long.
COLUMNS = [field.attname for field in Offering._meta.concrete_fields]
Found = Callable[[], Offering | None]
OFFERING = f"SELECT {', '.join(COLUMNS)} FROM broker_offering WHERE id = %s"


class PlacementImpossible(Refused):
    code, status, title = "placement-impossible", 422, "No fleet of ours could ever hold this"


class OfferingRetired(Refused):
    code, status, title = "offering-retired", 409, "This offering is no longer sold"


@dataclass(frozen=True)
class Wanted:
    """What a tenant asks for; times in seconds, dates aware."""

    offering_id: str
    name: str
    max_duration_s: int
    quantity: int = 1
    same_node: bool = False
    topology: str = (
        ""  # how near its cards are to each other: a name of `topology.ASKED`, all on one node then
    )
    end_date: datetime | None = None
    image: str = ""
    command: str = ""
    workload: str = ""  # a template's name; empty: by its image
    env: dict[str, str] = field(default_factory=dict)
    ssh_keys: Sequence[str] = ()
    volume: str = ""  # the id of one that no other lease has; empty: what it writes goes with it
    movable: bool = False  # we may stop it and start it on another card, after notice
    tags: dict[str, str] = field(default_factory=dict)
    quote: str = ""  # a promise of its price, in the words of the gate that made it


def build(
    wanted: Wanted, *, project: Project, actor: Actor, now: datetime, found: Found | None = None
) -> Lease:
    """Check a request and return it as an unsaved lease, or raise Refused; nothing is taken."""
    offering = (found or look_up(wanted.offering_id))()
    if offering is None or offering.state == OfferingState.DRAFT:
        raise Missing(f"There is no offering {wanted.offering_id!r}.", fix=_catalogue())
    if offering.state == OfferingState.RETIRED:
        raise OfferingRetired(f"{offering.label} takes no new leases; running ones go on.", fix=_catalogue())
    _check(wanted, now)
    vetting.check(wanted.workload, wanted.image, wanted.command, wanted.env, wanted.ssh_keys)
    if wanted.topology:
        wanted = _checked_topology(wanted, offering)
    if wanted.quantity > 1:
        _check_gang(wanted, offering)
    if wanted.movable and (why := stays(Isolation(offering.isolation), wanted.quantity)):
        raise never_moved(why)
    volume = None
    if wanted.volume:
        volume = mounting.mountable(
            wanted.volume,
            project=project,
            offering=offering,
            quantity=wanted.quantity,
            same_node=wanted.same_node,
        )
    lease = Lease(
        tenant_id=project.tenant_id,
        project=project,
        offering=offering,
        name=wanted.name.strip(),
        quantity=wanted.quantity,
        same_node=wanted.same_node,
        topology=wanted.topology,
        image=wanted.image,
        command=wanted.command,
        workload=wanted.workload,
        env=dict(wanted.env),
        ssh_keys=list(wanted.ssh_keys),
        volume=volume,
        movable=wanted.movable,
        tags=wanted.tags,
        max_duration_s=wanted.max_duration_s,
        end_date=wanted.end_date,
        created_at=now,
        at=now.replace(microsecond=0),
        requested_by=actor.id,
        requested_by_label=actor.label,
    )
    lease.cites, lease.asked_with = wanted.quote, actor.token
    return lease


@transaction.atomic
def request(wanted: Wanted, *, project: Project, actor: Actor, now: datetime) -> Lease:
    """Queue a lease that every gate lets pass, or raise Refused and leave nothing behind."""
    return enqueue(wanted, project=project, actor=actor, now=now)


def enqueue(
    wanted: Wanted, *, project: Project, actor: Actor, now: datetime, found: Found | None = None
) -> Lease:
    """Do the same for a caller who undoes the whole transaction when it is Refused, as the API does.

    `found` reads the offering when it was asked for already.
    """
    if wanted.volume:
        mounting.lock(wanted.volume)
    lease = build(wanted, project=project, actor=actor, now=now, found=found)
    hold_off_new(lease.tenant_id)
    gates.pass_all(lease, now=now)
    if lease.cites and not lease.quote_id:  # it would be charged something else than it was promised
        raise Invalid("quote", "No gate of this installation keeps quotes.", fix="Leave it out.")
    open_queued(lease, actor=actor)
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
    audit.record(
        "lease.request",
        actor=actor,
        now=now,
        tenant_id=lease.tenant_id,
        subject_id=lease.pk,
        subject_label=lease.name,
        offering=lease.offering.label,
        quantity=lease.quantity,
        max_duration_s=lease.max_duration_s,
    )
    return lease


def look_up(offering_id: str) -> Found:
    """Ask for an offering; what is returned waits for the answer."""
    cursor = database.prepared()
    cursor.execute(OFFERING, [offering_id])

    def read() -> Offering | None:
        with cursor:
            row = cursor.fetchone()
        return Offering.from_db("default", COLUMNS, row) if row else None

    return read


def _check(wanted: Wanted, now: datetime) -> None:
    if not is_name(wanted.name.strip()):
        raise Invalid(
            "name",
            "A name has 1 to 120 characters and no control or invisible characters.",
            fix="Choose a shorter, plain name.",
        )
    if not 1 <= wanted.quantity <= MAX_QUANTITY:
        raise Invalid("quantity", f"From 1 to {MAX_QUANTITY} at once.", fix="Ask for several leases.")
    longest = settings.MAX_LEASE_HOURS * 3600
    if not MIN_DURATION_S <= wanted.max_duration_s <= longest:
        raise Invalid(
            "max_duration_s",
            f"A lease lasts from {MIN_DURATION_S} s to {settings.MAX_LEASE_HOURS} h.",
            fix=f"Use {settings.MAX_LEASE_HOURS} h and extend later.",
        )
    if wanted.end_date is not None and wanted.end_date <= now + timedelta(seconds=MIN_DURATION_S):
        raise Invalid(
            "end_date",
            "The lease would end before it could start.",
            fix="Choose an end at least a minute from now, or leave it out.",
        )
    if wanted.end_date is not None and wanted.end_date > now + FARTHEST:
        raise Invalid(
            "end_date",
            "A fixed end lies at most five years ahead.",
            fix="Choose an earlier end, or leave it out.",
        )


def _checked_topology(wanted: Wanted, offering: Offering) -> Wanted:
    """Return the request with what follows from the links it asks for, or raise Invalid where there are none."""
    if wanted.topology not in ASKED:
        raise Invalid(
            "topology",
            f"{wanted.topology!r} is no way to reach a card.",
            fix=f"Use {' or '.join(ASKED)}, or nothing.",
        )
    if wanted.quantity == 1:
        raise Invalid(
            "topology", "One card has nothing to reach.", fix="Ask for several cards, or leave it out."
        )
    if profile_of(offering).kind is not ProfileKind.CARD:
        raise Invalid(
            "topology",
            f"{offering.label} is a part of a card, and only whole cards have links to each other.",
            fix="Ask for whole cards, or leave it out.",
        )
    return replace(wanted, same_node=True)


def _check_gang(wanted: Wanted, offering: Offering) -> None:
    if profile_of(offering).kind is ProfileKind.SHARE:  # two replicas of a card are not twice its compute
        raise Invalid(
            "quantity",
            f"{offering.label} is a share of a card: a lease has one, for two are not twice the compute.",
            fix="Ask for a larger slice, or for several leases.",
        )
    most = capacity.could_ever_fit(
        offering, quantity=wanted.quantity, same_node=wanted.same_node, topology=wanted.topology
    )
    if most < wanted.quantity:
        where = "one node" if wanted.same_node else "one cluster of the region"
        where += NEAR[wanted.topology]
        raise PlacementImpossible(
            f"{wanted.quantity} × {offering.label} ({profile_of(offering).name}) was asked for together; {where}"
            f" holds at most {most}, even when empty.",
            fix=Fix(
                f"Ask for at most {most}, or allow {_more_freely(wanted)}."
                if wanted.same_node
                else f"Ask for at most {most}.",
                "GET",
                "/api/v1/offerings",
            ),
            most=most,
        )


def never_moved(why: str) -> Invalid:
    """Return the refusal of a promise that nobody could keep."""
    return Invalid(
        "movable", f"{why[0].upper()}{why[1:]}.", fix="Leave `movable` out: nothing else is needed."
    )


def _more_freely(wanted: Wanted) -> str:
    return "other links" if wanted.topology else "several nodes"


def _catalogue() -> Fix:
    return Fix("Choose one from the catalogue.", "GET", "/api/v1/offerings")
