"""Pages that turn a cluster's switches on or off, with their consequences."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.services.inventory import cluster_options
from broker.services.leases.lifecycle import eviction
from web.portal.operators.layouts.layout_pages import find_cluster
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    operator_page,
)


@dataclass(frozen=True)
class SwitchTexts:
    """Texts of one switch direction; {} is the cluster's name."""

    title: str
    verb: str
    lines: tuple[str, ...]
    done: str
    danger: bool = False


SHARING_LINES = (
    gettext_noop(
        "Applies to isolation classes soft and none: tenants on one GPU are separated by software only, or not at all."
    ),
    gettext_noop("Whole GPUs and MIG slices are never affected."),
)
ALLOW_SHARING = SwitchTexts(
    gettext_noop("Allow tenants to share GPUs of {}?"),
    gettext_noop("Allow sharing"),
    (*SHARING_LINES, gettext_noop("Queued leases may be placed next to another tenant immediately.")),
    gettext_noop("Tenant sharing is allowed on {}."),
    danger=True,
)
FORBID_SHARING = SwitchTexts(
    gettext_noop("Disable tenant sharing on {}?"),
    gettext_noop("Disable sharing"),
    (
        *SHARING_LINES,
        gettext_noop("Leases that share a GPU now stay. New leases are not placed next to another tenant."),
    ),
    gettext_noop("Tenant sharing is disabled on {}."),
)
LEASES_KEEP_RUNNING = gettext_noop("A layout changes only while the node has no leases. No lease is interrupted.")
AUTO_REPARTITION = SwitchTexts(
    gettext_noop("Start layout plans of {} automatically?"),
    gettext_noop("Start automatically"),
    (
        LEASES_KEEP_RUNNING,
        gettext_noop(
            "Leases that need a profile missing from all layouts are queued until a GPU has it,"
            " instead of being refused."
        ),
    ),
    gettext_noop("Layout plans of {} now start automatically."),
)
MANUAL_REPARTITION = SwitchTexts(
    gettext_noop("Require approval for layout plans of {}?"),
    gettext_noop("Require approval"),
    (
        LEASES_KEEP_RUNNING,
        gettext_noop("Approved plans continue. Leases that need a profile missing from all layouts are refused."),
    ),
    gettext_noop("Layout plans of {} now require approval."),
)


@operator_page("cluster.allow_sharing", methods=SAFE_OR_POST)
def allow_sharing(request: OperatorRequest, pk: str) -> HttpResponse:
    """Allow tenants to share GPUs of classes soft and none."""
    return _confirm_switch(request, cluster_options.SHARED_GPUS, pk, ALLOW_SHARING, reverse("ops-clusters"), on=True)


@operator_page("cluster.forbid_sharing", methods=SAFE_OR_POST)
def forbid_sharing(request: OperatorRequest, pk: str) -> HttpResponse:
    """Keep tenants apart on GPUs of classes soft and none."""
    return _confirm_switch(request, cluster_options.SHARED_GPUS, pk, FORBID_SHARING, reverse("ops-clusters"), on=False)


@operator_page("layouts.enable_automatic", methods=SAFE_OR_POST)
def enable_auto_repartition(request: OperatorRequest, pk: str) -> HttpResponse:
    """Start repartition plans automatically."""
    return _confirm_switch(
        request, cluster_options.AUTO_REPARTITION, pk, AUTO_REPARTITION, reverse("ops-layouts", args=[pk]), on=True
    )


@operator_page("layouts.disable_automatic", methods=SAFE_OR_POST)
def disable_auto_repartition(request: OperatorRequest, pk: str) -> HttpResponse:
    """Make repartition plans wait for approval."""
    return _confirm_switch(
        request, cluster_options.AUTO_REPARTITION, pk, MANUAL_REPARTITION, reverse("ops-layouts", args=[pk]), on=False
    )


def _confirm_switch(
    request: OperatorRequest, switch: cluster_options.ClusterOption, pk: str, words: SwitchTexts, back: str, *, on: bool
) -> HttpResponse:
    cluster = find_cluster(pk)

    def act(why: str) -> str:
        cause = eviction.clean_reason(why)
        if not cluster_options.set_cluster_option(switch, cluster, on, why=cause, actor=request.actor, now=request.now):
            return _("{cluster_name} already has this setting.").format(cluster_name=cluster.name)
        return _(words.done).format(cluster.name)

    step = Confirmation(
        title=_(words.title).format(cluster.name),
        verb=_(words.verb),
        back=back,
        lines=tuple(_(line) for line in words.lines),
        danger=words.danger,
        hint=_("Recorded in the audit log."),
    )
    return confirm_action(request, step, act)
