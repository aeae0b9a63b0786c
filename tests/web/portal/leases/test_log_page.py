"""The log page: lines, search, filters, older lines and download."""

import re

import pytest

from broker.domain.logs.log_lines import LogLine
from broker.models import Lease, LeaseLog
from broker.services.logs import log_collection, log_storage
from broker.services.logs.log_storage import LogProgress
from tenants.services.rls import tenant_scope
from tests.simulation import create_tenant, offering, reload_lease
from tests.web.portal.signed_in_user import PortalSession
from web.portal.leases.log_page import LINES_PER_PAGE, split_by_match

pytestmark = pytest.mark.django_db


def finished_batch(portal: PortalSession, command: str) -> Lease:
    lease = portal.sim.request_lease(portal.owner, offering(), workload="batch", command=command)
    portal.sim.run()
    portal.sim.run(60)
    log_collection.collect_log(lease.pk, lease.tenant_id, now=portal.sim.now)
    return reload_lease(lease)


def write(lease: Lease, portal: PortalSession, *texts: str) -> None:
    with tenant_scope(lease.tenant_id):
        log = LeaseLog.objects.get(pk=lease.pk)
        lines = [LogLine(portal.sim.now, text) for text in texts]
        progress = LogProgress(log.generation, log.cursor, transition_seq=log.transition_seq, due_at=portal.sim.now)
        log_storage.store_lines(log, lines, progress)


def test_output_state_changes_and_exit_code_are_shown(portal: PortalSession) -> None:
    lease = finished_batch(portal, "echo hi; echo ERROR no memory; exit 3")
    page = portal.read(f"/leases/{lease.pk}/logs/")
    for part in ("hi", "ERROR ERROR no memory", "SYS lease provisioning", "exit code 3", "Kept for 30 days"):
        assert part in page
    assert "exit code 3" in portal.read(f"/leases/{lease.pk}/").replace("Exit code 3", "exit code 3")


def test_a_search_marks_its_matches_and_hides_other_lines(portal: PortalSession) -> None:
    lease = finished_batch(portal, "echo alpha; echo Beta; echo gamma")
    html = portal.client.get(f"/leases/{lease.pk}/logs/?q=BETA").content.decode()
    assert "<mark>Beta</mark>" in re.sub(r"<mark\s+>", "<mark>", html)
    assert "alpha" not in html
    assert "No line matches." in portal.read(f"/leases/{lease.pk}/logs/?q=delta")


def test_sources_and_levels_filter(portal: PortalSession) -> None:
    lease = finished_batch(portal, "echo plain; echo WARNING slow")
    assert "lease provisioning" not in portal.read(f"/leases/{lease.pk}/logs/?source=program")
    warnings = portal.read(f"/leases/{lease.pk}/logs/?level=warning&source=nonsense")
    assert "WARNING slow" in warnings
    assert "plain" not in warnings


def test_text_of_a_program_is_never_markup(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    write(lease, portal, "<script>alert(1)</script>", "</span><b onclick=x>")
    html = portal.client.get(f"/leases/{lease.pk}/logs/?q=<script>").content.decode()
    assert "<script>alert" not in html
    assert "<b onclick" not in html


def test_older_lines_are_on_earlier_pages(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    write(lease, portal, *(f"row-{number:04d}" for number in range(LINES_PER_PAGE + 50)))
    response = portal.client.get(f"/leases/{lease.pk}/logs/")
    html = response.content.decode()
    assert len(html) < 100_000
    assert "row-0049" not in html
    found = re.search(r'href="([^"]*before=\d+)"', html)
    assert found is not None
    earlier = portal.client.get(found[1].replace("&amp;", "&")).content.decode()
    assert "row-0049" in earlier
    assert "row-0050" not in earlier
    assert "data-stream" not in earlier
    assert "Show newest lines" in earlier
    assert portal.client.get(f"/leases/{lease.pk}/logs/?before=nonsense").status_code == 200


def test_a_running_lease_is_followed_and_a_finished_one_is_not(portal: PortalSession) -> None:
    running = portal.sim.create_lease(portal.owner, offering())
    html = portal.client.get(f"/leases/{running.pk}/logs/").content.decode()
    assert f"/api/v1/events/logs/{running.pk}?cursor=" in html
    over = finished_batch(portal, "echo hi")
    assert "data-stream" not in portal.client.get(f"/leases/{over.pk}/logs/").content.decode()


def test_what_is_said_without_lines(portal: PortalSession) -> None:
    queued = portal.sim.request_lease(portal.owner, offering())
    assert "No output yet." in portal.read(f"/leases/{queued.pk}/logs/")
    over = finished_batch(portal, "echo hi")
    with tenant_scope(over.tenant_id):
        log_storage.delete_log(LeaseLog.objects.get(pk=over.pk))
    assert "Nothing is kept of this log." in portal.read(f"/leases/{over.pk}/logs/")


def test_a_fault_and_removed_lines_are_stated(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    write(lease, portal, "hello")
    with tenant_scope(lease.tenant_id):
        LeaseLog.objects.update(fault="The cluster does not respond: timed out", first_line=1235)
    page = portal.read(f"/leases/{lease.pk}/logs/")
    assert "New output cannot be read. The cluster does not respond: timed out" in page
    assert "1,234 older lines were removed" in page


def test_the_download_is_a_text_file(portal: PortalSession) -> None:
    lease = finished_batch(portal, "echo hi")
    answer = portal.client.get(f"/leases/{lease.pk}/logs/download/")
    assert answer["Content-Disposition"] == f'attachment; filename="{lease.pk}.log"'
    assert answer.content.decode().count(" program  hi\n") == 1


def test_another_tenants_log_does_not_exist(portal: PortalSession) -> None:
    other = create_tenant("Other")
    theirs = portal.sim.create_lease(other, offering())
    for path in ("logs/", "logs/download/"):
        assert portal.client.get(f"/leases/{theirs.pk}/{path}").status_code == 404


@pytest.mark.parametrize(
    ("text", "search", "parts"),
    [
        ("abcABC", "b", [("a", False), ("b", True), ("cA", False), ("B", True), ("C", False)]),
        ("aaa", "aa", [("aa", True), ("a", False)]),
        ("abc", "", [("abc", False)]),
        ("", "x", [("", False)]),
        ("ab", "ab", [("ab", True)]),
        ("Maße", "e", [("Maße", False)]),
    ],
)
def test_parts_of_a_line_that_match(text: str, search: str, parts: list[tuple[str, bool]]) -> None:
    assert split_by_match(text, search) == parts
