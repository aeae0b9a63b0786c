"""Default ids of each kind of row; functions, because migrations must be able to name them."""

from ports import ids

ID_LENGTH = 40


def cluster_id() -> str:
    return ids.new("clu")


def node_id() -> str:
    return ids.new("nod")


def gpu_id() -> str:
    return ids.new("gpu")


def offering_id() -> str:
    return ids.new("off")


def lease_id() -> str:
    return ids.new("lse")


def allocation_id() -> str:
    return ids.new("alc")


def volume_id() -> str:
    return ids.new("vol")


def layout_change_id() -> str:
    return ids.new("lch")


def move_plan_id() -> str:
    return ids.new("mpl")


def move_id() -> str:
    return ids.new("mov")


def installation_id() -> str:
    return ids.new("ins")
