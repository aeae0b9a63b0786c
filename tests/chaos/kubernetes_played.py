"""Documented faults and the steps of the long chaos run that simulate them."""

from tests.chaos import kubernetes_disasters as disasters
from tests.chaos import kubernetes_faults as faults
from tests.chaos.kubernetes_faults import Step

PLAYED: dict[str, tuple[Step, ...]] = {
    "409 on apply": (faults.conflict,),
    "409 on delete precondition": (faults.conflict,),
    "403 quota": (faults.over_quota,),
    "422": (faults.invalid,),
    "429 with Retry-After": (faults.busy,),
    "503 with Retry-After": (faults.busy,),
    "410 in the stream": (faults.forgets,),
    "silent stall": (faults.stalls,),
    "API server killed": (faults.server_dies,),
    "etcd stopped": (faults.memory_dies, faults.memory_hangs),
    "restored from an old backup": (disasters.is_backed_up, disasters.is_restored),
    "empty list by mistake": (faults.is_empty_by_mistake,),
    "token revoked": (faults.denied,),
    "permission lost": (faults.denied,),
    "worker or agent killed between any two calls": (faults.worker_dies, faults.agent_dies),
    "pod evicted": (faults.pod_is_evicted,),
    "preempted": (disasters.neighbour_needs_the_place,),
    "OOMKilled": (faults.asks,),
    "image that never pulls": (faults.asks,),
    "node lost and back": (faults.node_loses_power, faults.nodes_have_power),
    "finalizer stuck": (faults.somebody_holds_a_pod, faults.nobody_holds),
    "namespace deleted by hand": (faults.namespace_is_deleted,),
    "a foreign object with our name": (disasters.ask_where_a_foreign_object_is,),
    "tenant edits our object": (faults.somebody_edits, faults.somebody_deletes),
    "device plugin reports fewer devices": (faults.plugin_reports_fewer, faults.plugin_reports_all),
    "MIG change that wedges": (disasters.node_is_cut_anew, disasters.minutes_pass),
    "cluster unreachable for hours": (disasters.hours_pass_in_silence,),
}
