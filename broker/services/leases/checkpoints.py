"""Checkpoint commands: run inside a spot lease when it gets notice."""

from datetime import datetime

from broker.domain.lifecycle.spot_terms import ReclaimNoticeState
from broker.domain.logs.secret_masks import excerpt_masker, secret_values
from broker.models import ReclaimNotice
from broker.provisioners.base import ClusterUnreachable, CommandFailed, ProvisionSpec
from broker.services.inventory import cluster_provisioners
from broker.services.leases.provision_specs import load_provision_spec
from ports import outbox
from tenants.services.rls import tenant_scope

STARTED_TEXT = "the checkpoint command was started"
AGAIN_IN_S = 10.0


def run_checkpoint(notice_id: str, tenant_id: str, *, now: datetime) -> None:
    """Start the checkpoint command of a lease under notice, once; record what came of it.

    A cluster that does not respond is asked again until the end of the notice.
    """
    with tenant_scope(tenant_id):
        open_notices = ReclaimNotice.objects.filter(
            pk=notice_id, state=ReclaimNoticeState.GIVEN.value, checkpoint_at=None
        )
        notice = open_notices.select_related("lease__offering", "lease__volume").first()
        if notice is None or not open_notices.update(checkpoint_at=now):  # a second worker does not run it again
            return
        spec = load_provision_spec(notice.lease, with_secrets=True)
    try:
        cluster_provisioners.provisioner_of(spec).run_command(spec, notice.lease.checkpoint_command, now=now)
        text = STARTED_TEXT
    except CommandFailed as error:
        text = f"the checkpoint command failed{_masked_output(str(error), spec)}"
    except ClusterUnreachable as error:
        text = f"the cluster does not respond: {error}"
        _run_again(notice, text=text, now=now)
        return
    with tenant_scope(tenant_id):
        ReclaimNotice.objects.filter(pk=notice_id).update(checkpoint_text=text[:200])


def _masked_output(output: str, spec: ProvisionSpec) -> str:
    """Return the words of a failed command with the lease's secrets masked."""
    if any(each.value is None for each in spec.secrets):
        return ""
    return ": " + excerpt_masker(secret_values(spec.env, spec.secrets, spec.access_token))(output)


def _run_again(notice: ReclaimNotice, *, text: str, now: datetime) -> None:
    with tenant_scope(notice.tenant_id):
        ReclaimNotice.objects.filter(pk=notice.pk).update(checkpoint_at=None, checkpoint_text=text[:200])
        if (notice.reclaim_at - now).total_seconds() > AGAIN_IN_S:
            outbox.enqueue("broker.run_checkpoint", notice.pk, tenant_id=notice.tenant_id, now=now, after_s=AGAIN_IN_S)
