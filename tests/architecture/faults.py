"""The one table of faults: for each that may befall a cluster, the tests that play it simulated and for real.

A test is named `file::test`, or `file::test[parameter]`; a fixture that plays both worlds stands in both columns.
"""

from dataclasses import dataclass

BOTH = "tests/cluster/behaviours"
TROUBLES, LOSSES, PROGRAMS = (f"{BOTH}/test_{name}.py" for name in ("troubles", "losses", "programs"))
ON_THE_WAY, KILLED = "tests/cluster/test_faults_on_the_way.py", "tests/cluster/test_faults.py"
NEIGHBOURS, CUTTING = "tests/cluster/test_neighbours.py", "tests/cluster/test_cutting_nodes.py"
REFLECTOR, TRANSPORT = (
    f"tests/broker/provisioners/kubernetes/test_{name}.py" for name in ("reflector", "transport")
)
SERVICES = "tests/broker/services"


@dataclass(frozen=True)
class Fault:
    """The tests that play one fault, without a control plane and on one."""

    simulated: tuple[str, ...]
    real: tuple[str, ...]


def both(*tests: str, simulated: str = "", real: str = "") -> Fault:
    """Play it by the same tests in both worlds, and by one more in one of them."""
    return Fault(
        (*tests, *((simulated,) if simulated else ())),
        (*tests, *((real,) if real else ())),
    )


def each(simulated: str, real: str) -> Fault:
    return Fault((simulated,), (real,))


RETRIED = f"{TROUBLES}::test_a_no_for_the_moment_is_asked_again"
GOING = f"{TROUBLES}::test_a_no_while_it_goes_is_asked_again"
DENIED = f"{TROUBLES}::test_lost_rights_end_no_lease"
DEAD = f"{KILLED}::test_a_control_plane_that_is_killed_loses_nothing"
LONG_SILENCE = f"{TROUBLES}::test_a_long_silence_is_told_and_forgotten"
NAMED_TIME = f"{ON_THE_WAY}::test_a_server_that_wants_more_time_than_we_have_names_it"
PUSHED = f"{LOSSES}::test_what_the_cluster_pushed_out_for_good_is_told_and_ended"

FAULTS: dict[str, Fault] = {
    "409 on apply": both(
        f"{RETRIED}[409 on apply]",
        real=f"{ON_THE_WAY}::test_a_conflict_while_it_is_made_is_looked_at_anew",
    ),
    "409 on delete precondition": both(
        f"{GOING}[409 on delete]",
        simulated=f"{TRANSPORT}::test_a_delete_names_the_uid_and_waits_for_dependents",
        real=f"{KILLED}::test_a_delete_of_what_was_made_anew_meanwhile_spares_the_successor",
    ),
    "403 quota": both(
        f"{TROUBLES}::test_a_clusters_own_quota_lets_wait_until_there_is_room",
        real=f"{KILLED}::test_a_quota_of_the_cluster_that_is_used_up_is_told_as_such",
    ),
    "422": both(
        f"{TROUBLES}::test_what_a_cluster_calls_invalid_ends_its_lease_in_its_words",
        real=f"{ON_THE_WAY}::test_what_the_server_calls_invalid_is_refused_in_its_words",
    ),
    "429 with Retry-After": both(
        f"{RETRIED}[429]",
        simulated=f"{TRANSPORT}::test_a_server_that_says_when_is_asked_then",
        real=f"{NAMED_TIME}[429]",
    ),
    "503 with Retry-After": both(
        f"{RETRIED}[503]",
        simulated=f"{TRANSPORT}::test_a_pause_longer_than_we_have_is_told_to_the_caller",
        real=f"{NAMED_TIME}[503]",
    ),
    "410 in the stream": each(
        f"{REFLECTOR}::test_410_inside_the_stream_lists_again_after_a_moment_of_its_own",
        f"{ON_THE_WAY}::test_a_stream_that_says_410_is_listed_anew_and_once",
    ),
    "silent stall": both(
        f"{TROUBLES}::test_a_short_silence_is_not_told",
        simulated=f"{REFLECTOR}::test_a_broken_stream_is_resumed_without_a_list",
        real=f"{ON_THE_WAY}::test_a_watch_that_stalls_is_given_up_and_misses_nothing",
    ),
    "API server killed": both(LONG_SILENCE, real=f"{DEAD}[kube-apiserver]"),
    "etcd stopped": both(LONG_SILENCE, real=f"{DEAD}[etcd]"),
    "restored from an old backup": both(
        f"{TROUBLES}::test_an_older_state_of_a_cluster_is_neither_believed_nor_told_anything",
        simulated=f"{SERVICES}/test_freezing.py::test_a_list_older_than_what_was_seen_freezes_the_cluster_and_ends_nothing",
        real=f"{NEIGHBOURS}::test_an_older_state_of_it_does_not_end_what_it_forgot",
    ),
    "empty list by mistake": both(
        f"{LOSSES}::test_an_inventory_that_is_empty_by_mistake_takes_nothing_out_of_the_pool",
        real=f"{ON_THE_WAY}::test_a_list_that_is_empty_by_mistake_ends_no_lease",
    ),
    "token revoked": both(
        f"{DENIED}[401]",
        simulated=f"{TRANSPORT}::test_a_token_that_stays_bad_is_denied",
        real=f"{KILLED}::test_a_token_that_was_revoked_says_nothing_either",
    ),
    "permission lost": both(
        f"{DENIED}[403]",
        simulated=f"{REFLECTOR}::test_what_it_may_not_see_is_not_taken_as_gone",
        real=f"{KILLED}::test_rights_that_were_lost_say_nothing_about_what_is_there",
    ),
    "worker or agent killed between any two calls": both(
        f"{TROUBLES}::test_a_worker_that_dies_leaves_its_lease_to_the_next",
        real=f"{ON_THE_WAY}::test_a_worker_killed_between_any_two_calls_leaves_one_lease_and_then_none",
    ),
    "pod evicted": both(
        f"{LOSSES}::test_a_pod_that_was_evicted_is_replaced_and_its_lease_stays", f"{PUSHED}[Evicted]"
    ),
    "preempted": both(f"{PUSHED}[PreemptionByScheduler]"),
    "OOMKilled": both(
        f"{PROGRAMS}::test_a_batch_that_ends_badly_says_how[takes too much memory]",
        f"{PROGRAMS}::test_a_session_whose_program_ends_is_started_again_and_stays[takes too much memory]",
    ),
    "image that never pulls": both(f"{LOSSES}::test_an_image_that_is_never_pulled_ends_its_lease_unpaid"),
    "node lost and back": both(
        f"{LOSSES}::test_a_node_lost_for_a_moment_costs_nobody_a_lease",
        f"{LOSSES}::test_a_lost_node_that_is_back_is_sold_again",
        simulated=f"{SERVICES}/test_sightings.py::test_a_silent_node_is_lost_and_sold_again_once_it_is_heard_and_clean",
        real="tests/cluster/test_agent.py::test_a_lost_node_is_taken_out_and_comes_back_when_nothing_old_runs_there",
    ),
    "finalizer stuck": both(
        f"{LOSSES}::test_what_somebody_holds_up_keeps_its_place_until_it_is_gone",
        f"{LOSSES}::test_what_was_deleted_by_hand_while_nobody_looked_is_charged_to_that_moment",
        real=f"{KILLED}::test_a_pod_held_by_a_strangers_finalizer_keeps_its_places_and_says_why",
    ),
    "namespace deleted by hand": both(
        f"{LOSSES}::test_a_namespace_deleted_by_hand_ends_its_leases_and_takes_new_ones_again"
    ),
    "a stranger's object with our name": both(
        f"{LOSSES}::test_a_stranger_with_our_name_is_left_alone_and_the_lease_refused"
    ),
    "tenant edits our object": both(
        f"{LOSSES}::test_what_somebody_edits_by_hand_is_put_right_and_its_lease_stays",
        f"{LOSSES}::test_what_somebody_deleted_by_hand_ends_its_lease",
    ),
    "device plugin reports fewer devices": both(
        f"{LOSSES}::test_a_node_that_reports_fewer_cards_is_sold_no_further",
        real=f"{ON_THE_WAY}::test_a_node_whose_plugin_reports_fewer_cards_takes_nobody_and_is_told",
    ),
    "MIG change that wedges": both(
        f"{CUTTING}::test_a_wedge_is_healed_by_another_name_and_back",
        simulated=f"{SERVICES}/test_repartition_node.py::test_a_wedge_is_healed_without_a_human_within_twelve_minutes",
    ),
    "cluster unreachable for hours": both(
        f"{TROUBLES}::test_what_expires_in_hours_of_silence_is_charged_to_its_last_proof_of_life"
    ),
}
