"""Records of a batch lease's runs, and the retry that follows one."""

from datetime import datetime

from django.db.models import QuerySet

from broker.models import Lease, LeaseAttempt

MAX_TEXT = 300


def record_attempt(
    lease: Lease,
    *,
    ended_at: datetime,
    exit_code: int | None,
    text: str,
    counted: bool = True,
    retry_at: datetime | None = None,
) -> None:
    """Record how a run ended, once for each generation of its lease."""
    attempt = LeaseAttempt(
        tenant_id=lease.tenant_id,
        lease=lease,
        number=lease.attempt,
        generation=lease.generation,
        started_at=lease.active_at,
        ended_at=ended_at,
        exit_code=exit_code,
        text=text[:MAX_TEXT],
        counted=counted,
        retry_at=retry_at,
    )
    LeaseAttempt.objects.bulk_create([attempt], ignore_conflicts=True)


def attempts_of(lease: Lease) -> QuerySet[LeaseAttempt]:
    """Return the runs of a lease that are over, oldest first."""
    return LeaseAttempt.objects.filter(lease=lease).order_by("generation")


def find_pending_retry(lease: Lease) -> LeaseAttempt | None:
    """Return the ended run that another run is to follow, or None."""
    return LeaseAttempt.objects.filter(lease=lease, generation=lease.generation, retry_at__isnull=False).first()


def cancel_retry(lease: Lease) -> None:
    """Cancel the retry of a lease whose tenant stops it."""
    LeaseAttempt.objects.filter(lease=lease, generation=lease.generation).update(retry_at=None)


def count_losses(lease: Lease) -> int:
    """Return how many runs of a lease the provider lost, preemptions excluded."""
    return LeaseAttempt.objects.filter(lease=lease, counted=False, retry_at__isnull=False).count()
