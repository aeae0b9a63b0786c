"""Generators of row ids, one per prefix, as functions that migrations import."""

from functools import partial

from ports import ids

ID_LENGTH = 40

cluster_id = partial(ids.new, "clu")
node_id = partial(ids.new, "nod")
gpu_id = partial(ids.new, "gpu")
offering_id = partial(ids.new, "off")
lease_id = partial(ids.new, "lse")
allocation_id = partial(ids.new, "alc")
volume_id = partial(ids.new, "vol")
repartition_id = partial(ids.new, "lch")
relocation_plan_id = partial(ids.new, "mpl")
relocation_id = partial(ids.new, "mov")
spot_reclaim_id = partial(ids.new, "rcl")
reclaim_notice_id = partial(ids.new, "rcn")
secret_id = partial(ids.new, "sec")
secret_version_id = partial(ids.new, "scv")
lease_notice_id = partial(ids.new, "not")
lease_attempt_id = partial(ids.new, "att")
lease_array_id = partial(ids.new, "arr")
lease_schedule_id = partial(ids.new, "sch")
scheduled_run_id = partial(ids.new, "run")
template_id = partial(ids.new, "tpl")
image_prepull_id = partial(ids.new, "img")
installation_id = partial(ids.new, "ins")
