"""Table of cluster faults and the tests that cover them.

A test is named `file::test`, or `file::test[parameter]`; a test that runs on both kinds of cluster is in both columns.
`python -m tests.architecture.faults` writes docs/reference/faults.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BOTH = "tests/cluster/behaviours"
TROUBLES, LOSSES, PROGRAMS = (f"{BOTH}/test_{name}.py" for name in ("troubles", "losses", "programs"))
MOVES = f"{BOTH}/test_moves.py"
ON_THE_WAY, KILLED = "tests/cluster/test_faults_on_the_way.py", "tests/cluster/test_faults.py"
NEIGHBOURS, CUTTING = "tests/cluster/test_neighbours.py", "tests/cluster/test_cutting_nodes.py"
REFLECTOR, TRANSPORT = (f"tests/broker/provisioners/kubernetes/test_{name}.py" for name in ("reflector", "transport"))
SERVICES = "tests/broker/services"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "faults.md"
HEAD = """# Faults

Faults of a cluster, and the tests that cover them: on the simulated fleet, and on a real control plane (etcd, API
server, scheduler, controllers; simulated kubelets). A test in the **both** column runs on both kinds of cluster, and
its outcomes are compared. Where a fault needs separate tests, the last column gives the reason.

Written by `python -m tests.architecture.faults` from `tests/architecture/faults.py`; a test compares the page with that
table and the table with the tests. `python -m tests.chaos.kubernetes` injects all of these faults at random too:
`tests/chaos/kubernetes_played.py` lists its steps for each fault, and a test compares that list with this table.

| Fault | Both, by the same test | Simulated only | Real only | Why separate tests |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Fault:
    """The tests of one fault, without a control plane and on one."""

    simulated: tuple[str, ...]
    real: tuple[str, ...]
    why: str = ""  # one world has a test of its own

    @property
    def shared(self) -> list[str]:
        return [test for test in self.simulated if test in self.real]


def shared_tests(*tests: str, simulated: str = "", real: str | tuple[str, ...] = (), why: str = "") -> Fault:
    """Return a fault with shared tests, and with others on one kind of cluster."""
    alone = (real,) if isinstance(real, str) else real
    return Fault((*tests, *((simulated,) if simulated else ())), (*tests, *alone), why)


def separate_tests(simulated: str, real: str, why: str) -> Fault:
    return Fault((simulated,), (real,), why)


def to_markdown() -> str:
    """Return the table as Markdown."""
    return HEAD + "".join(_row(name, fault) for name, fault in FAULTS.items())


def _row(name: str, fault: Fault) -> str:
    columns = (
        fault.shared,
        [test for test in fault.simulated if test not in fault.shared],
        [test for test in fault.real if test not in fault.shared],
    )
    return f"| {name} | {' | '.join(map(_cell, columns))} | {fault.why} |\n"


def _cell(tests: Iterable[str]) -> str:
    return "<br>".join(f"`{test}`" for test in tests)


RETRIED = f"{TROUBLES}::test_a_transient_refusal_at_start_is_retried"
GOING = f"{TROUBLES}::test_a_transient_refusal_at_release_is_retried"
DENIED = f"{TROUBLES}::test_revoked_cluster_rights_end_no_lease"
DEAD = f"{KILLED}::test_a_killed_and_restarted_control_plane_loses_no_lease"
LONG_SILENCE = f"{TROUBLES}::test_a_long_outage_sets_and_clears_the_condition"
NAMED_TIME = f"{ON_THE_WAY}::test_a_retry_delay_above_the_timeout_is_passed_on_to_the_caller"
PUSHED = f"{LOSSES}::test_an_evicted_pod_ends_its_lease_as_device_lost"

FAULTS: dict[str, Fault] = {
    "409 on apply": shared_tests(
        f"{RETRIED}[409 on apply]",
        real=f"{ON_THE_WAY}::test_a_conflict_at_creation_is_retried",
        why="Only the real server shows what somebody else wrote meanwhile.",
    ),
    "409 on delete precondition": shared_tests(
        f"{GOING}[409 on delete]",
        simulated=f"{TRANSPORT}::test_a_delete_names_the_uid_and_waits_for_dependents",
        real=f"{KILLED}::test_a_delete_with_an_outdated_uid_keeps_the_new_object",
        why="Only a real server has uids; what a delete names is tried on a scripted one.",
    ),
    "403 quota": shared_tests(
        f"{TROUBLES}::test_a_lease_refused_by_the_clusters_quota_waits_until_there_is_room",
        real=f"{KILLED}::test_an_exhausted_resource_quota_is_named_in_the_progress_text",
        why="The words of a real ResourceQuota are the real server's.",
    ),
    "422": shared_tests(
        f"{TROUBLES}::test_a_spec_refused_by_the_cluster_ends_its_lease_with_the_message",
        real=f"{ON_THE_WAY}::test_an_object_refused_by_the_server_is_reported_with_the_message",
        why="Its words are the real server's.",
    ),
    "429 with Retry-After": shared_tests(
        f"{RETRIED}[429]",
        simulated=f"{TRANSPORT}::test_a_retry_waits_for_the_retry_after_header",
        real=f"{NAMED_TIME}[429]",
        why="`Retry-After` is a header: what is read of it is tried where there is HTTP.",
    ),
    "503 with Retry-After": shared_tests(
        f"{RETRIED}[503]",
        simulated=f"{TRANSPORT}::test_a_retry_after_beyond_the_deadline_is_raised_to_the_caller",
        real=f"{NAMED_TIME}[503]",
        why="`Retry-After` is a header: what is read of it is tried where there is HTTP.",
    ),
    "410 in the stream": separate_tests(
        f"{REFLECTOR}::test_a_410_event_in_a_watch_relists_after_a_random_delay",
        f"{ON_THE_WAY}::test_a_watch_with_410_gone_is_listed_again_exactly_once",
        "The simulated fleet has no stream: who reads streams is tried on a scripted server.",
    ),
    "silent stall": shared_tests(
        f"{TROUBLES}::test_a_short_outage_sets_no_condition",
        simulated=f"{REFLECTOR}::test_a_broken_stream_is_resumed_without_a_list",
        real=f"{ON_THE_WAY}::test_a_stalled_watch_is_replaced_and_misses_no_event",
        why="The simulated fleet has no stream; who reads streams is tried on a scripted server as well.",
    ),
    "API server killed": shared_tests(
        LONG_SILENCE,
        real=f"{DEAD}[kube-apiserver]",
        why="The simulated fleet has no server to kill: to the product that is silence.",
    ),
    "etcd stopped": shared_tests(
        LONG_SILENCE,
        real=f"{DEAD}[etcd]",
        why="The simulated fleet has no etcd to stop: to the product that is silence.",
    ),
    "restored from an old backup": shared_tests(
        f"{TROUBLES}::test_a_frozen_cluster_changes_no_lease_until_it_is_unfrozen",
        simulated=f"{SERVICES}/clusters/test_cluster_freeze.py::test_a_list_with_an_older_version_freezes_the_cluster_and_keeps_objects",
        real=(
            f"{NEIGHBOURS}::test_a_cluster_with_an_older_resource_version_raises_cluster_unreachable",
            f"{KILLED}::test_a_control_plane_restored_from_a_backup_ends_no_lease",
        ),
        why="Only a real cluster has versions that fall back; that this is noticed is tried on lists by hand.",
    ),
    "empty list by mistake": shared_tests(
        f"{LOSSES}::test_an_empty_inventory_is_ignored",
        f"{TROUBLES}::test_one_empty_observation_of_a_cluster_ends_no_lease",
        f"{TROUBLES}::test_many_missing_leases_end_only_when_confirmed_and_when_last_seen",
        real=f"{ON_THE_WAY}::test_a_wrongly_empty_list_ends_no_lease",
        why="The agent's lists exist only in a real cluster.",
    ),
    "token revoked": shared_tests(
        f"{DENIED}[401]",
        simulated=f"{TRANSPORT}::test_a_token_rejected_twice_is_denied",
        real=f"{KILLED}::test_calls_with_a_revoked_token_raise_cluster_unreachable",
        why="Tokens are the real server's; what a call does with a bad one is tried on a scripted server.",
    ),
    "permission lost": shared_tests(
        f"{DENIED}[403]",
        simulated=f"{REFLECTOR}::test_a_forbidden_list_does_not_report_objects_as_deleted",
        real=f"{KILLED}::test_calls_without_rights_raise_cluster_unreachable",
        why="Rights are the real server's; what a watch does without is tried on a scripted server.",
    ),
    "worker or agent killed between any two calls": shared_tests(
        f"{TROUBLES}::test_the_lease_of_a_killed_worker_is_started_by_the_next_worker",
        f"{MOVES}::test_a_relocation_completes_although_the_worker_dies_around_every_step",
        real=(
            f"{ON_THE_WAY}::test_a_worker_killed_between_any_two_calls_duplicates_and_leaks_no_pod",
            "tests/cluster/test_agent.py::test_an_agent_killed_at_any_write_is_replaced_without_lost_or_duplicate_pods",
        ),
        why="On the simulated fleet a step is one call, and nobody follows it; on a real one a worker is killed before"
        " and after each call, and an agent before and after all that it writes.",
    ),
    "pod evicted": shared_tests(
        f"{LOSSES}::test_an_evicted_pod_is_replaced_and_its_lease_stays_active", f"{PUSHED}[Evicted]"
    ),
    "preempted": shared_tests(f"{PUSHED}[PreemptionByScheduler]"),
    "OOMKilled": shared_tests(
        f"{PROGRAMS}::test_a_failed_batch_job_ends_its_lease_with_the_reason[takes too much memory]",
        f"{PROGRAMS}::test_an_interactive_lease_restarts_its_program_and_stays_active[takes too much memory]",
    ),
    "image that never pulls": shared_tests(f"{LOSSES}::test_a_lease_whose_image_cannot_be_pulled_ends_free_of_charge"),
    "node lost and back": shared_tests(
        f"{LOSSES}::test_a_briefly_lost_node_sets_a_condition_and_ends_no_lease",
        f"{LOSSES}::test_a_recovered_node_takes_leases_again",
        f"{LOSSES}::test_a_cordoned_node_that_reboots_stays_cordoned",
        f"{MOVES}::test_a_relocation_to_a_lost_node_returns_the_lease_to_its_old_gpu",
        simulated=f"{SERVICES}/clusters/test_observed_objects.py::test_a_lost_node_is_ready_again_once_it_reports_and_has_no_unknown_pods",
        real="tests/cluster/test_agent.py::test_a_powered_off_node_is_lost_and_becomes_ready_again",
        why="That an agent hears of it by its watch is tried with a real agent.",
    ),
    "finalizer stuck": shared_tests(
        f"{LOSSES}::test_a_pod_held_by_a_finalizer_keeps_its_slot_until_it_is_deleted",
        f"{LOSSES}::test_a_lease_deleted_unobserved_is_charged_until_its_deletion",
        real=f"{KILLED}::test_a_pod_held_by_a_foreign_finalizer_stays_pending_and_names_it",
        why="Only real objects have finalizers; the fleet's pods are held up in another way.",
    ),
    "namespace deleted by hand": shared_tests(
        f"{LOSSES}::test_a_manually_deleted_namespace_ends_its_leases_and_is_created_again"
    ),
    "a foreign object with our name": shared_tests(
        f"{LOSSES}::test_a_foreign_object_with_a_leases_name_is_kept_and_the_lease_refused"
    ),
    "tenant edits our object": shared_tests(
        f"{LOSSES}::test_a_manually_edited_object_is_repaired_and_its_lease_stays_active",
        f"{LOSSES}::test_manually_deleted_objects_end_their_lease",
    ),
    "device plugin reports fewer devices": shared_tests(
        f"{LOSSES}::test_a_node_that_reports_fewer_gpus_takes_no_further_leases",
        real=f"{ON_THE_WAY}::test_a_node_that_reports_fewer_gpus_rejects_the_lease_as_lost",
        why="How a shortage is told to the scheduler exists only there.",
    ),
    "MIG change that wedges": shared_tests(
        f"{CUTTING}::test_a_hanging_layout_change_recovers_by_an_alias_and_back",
        simulated=f"{SERVICES}/repartition/test_repartition_node.py::test_a_hanging_mig_manager_is_recovered_within_twelve_minutes",
        why="The minutes that a wedge takes pass at once on the simulated fleet.",
    ),
    "cluster unreachable for hours": shared_tests(
        f"{TROUBLES}::test_a_lease_that_expires_in_a_long_outage_is_charged_until_last_seen"
    ),
}


if __name__ == "__main__":
    DOCUMENT.write_text(to_markdown())
