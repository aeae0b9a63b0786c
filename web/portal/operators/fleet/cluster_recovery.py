"""Operators' decisions on clusters that differ from our records.

Delete orphaned objects, or unfreeze a cluster and accept it as it is.
"""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from broker.models import Orphan
from broker.services.clusters import orphan_removal
from broker.services.clusters.health import cluster_freeze
from broker.services.leases.lifecycle import eviction
from web.portal.operators.layouts.layout_pages import find_cluster
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    operator_page,
)

MAX_NAMES = 12


@operator_page("orphans.delete", methods=SAFE_OR_POST)
def approve_orphan_deletion(request: OperatorRequest, pk: str) -> HttpResponse:
    """List orphaned objects of a cluster, and approve the deletion of exactly those."""
    cluster = None if pk == orphan_removal.SIMULATED else find_cluster(pk)
    place = cluster.name if cluster else _("the simulated fleet")
    waiting = Orphan.objects.filter(cluster=cluster, deletion_approved_at=None, deletion_requested_at=None).order_by(
        "-pk"
    )
    # Orphans found after the page was shown are not part of the approval.
    shown = request.GET.get("until", "")
    if not shown.isdecimal() or len(shown) > 18:
        newest = waiting.first()
        return redirect(f"{request.path}?until={newest.pk if newest else 0}")
    names = sorted(waiting.filter(pk__lte=int(shown)).values_list("name", flat=True))

    def act(why: str) -> str:
        where = cluster.pk if cluster else None
        count = orphan_removal.approve_removal(
            where, names, why=eviction.clean_reason(why), actor=request.actor, now=request.now
        )
        return _("{count} objects in {place} will be deleted within four minutes.").format(count=count, place=place)

    more = _(" and {max_names} more").format(max_names=len(names) - MAX_NAMES) if len(names) > MAX_NAMES else ""
    step = Confirmation(
        title=_("Delete orphaned objects in {place}?").format(place=place),
        verb=_("Delete {names} objects").format(names=len(names)),
        back=reverse("control-room"),
        lines=(
            _("These managed objects have no lease in the database: {max_names}{more}.").format(
                max_names=", ".join(names[:MAX_NAMES]), more=more
            )
            if names
            else _("There are no orphaned objects."),
            _("If the database was restored from a backup, do not delete them: the backup may lack their leases."),
        ),
        danger=True,
        hint=_("Recorded in the audit log."),
    )
    return confirm_action(request, step, act)


@operator_page("cluster.unfreeze", methods=SAFE_OR_POST)
def unfreeze_cluster(request: OperatorRequest, pk: str) -> HttpResponse:
    """Unfreeze a cluster and accept its present state."""
    cluster = find_cluster(pk)

    def act(why: str) -> str:
        cluster_freeze.unfreeze_cluster(cluster, why=eviction.clean_reason(why), actor=request.actor, now=request.now)
        return _("The current state of {cluster_name} was accepted.").format(cluster_name=cluster.name)

    step = Confirmation(
        title=_("Accept the current state of {cluster_name}?").format(cluster_name=cluster.name),
        verb=_("Accept current state"),
        back=reverse("ops-clusters"),
        lines=(
            _("The cluster was frozen: {frozen}.").format(frozen=cluster.frozen)
            if cluster.frozen
            else _("The cluster is not frozen."),
            _(
                "Leases whose pods are missing end at their last heartbeat. Pods without a lease in the database "
                "are deleted after 24 hours."
            ),
        ),
        danger=True,
        hint=_("Recorded in the audit log."),
    )
    return confirm_action(request, step, act)
