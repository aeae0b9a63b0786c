"""What our objects are called: from ids and generations alone, so that the same thing is called the same for ever."""

import hashlib
import re

from broker.provisioners.base import order_name

LONGEST = 63
LONGEST_SET = 52  # a StatefulSet's controller puts its name and a hash into a label of the pod
ID = re.compile(r"[a-z]{3}_([0-9a-z]{1,40})", re.ASCII)


def tail(any_id: str) -> str:
    """Return the part of an id that may stand in a name, or raise ValueError when it is no id of ours."""
    found = ID.fullmatch(any_id)
    if found is None:
        raise ValueError(f"{any_id!r} is no id of ours: three letters, an underscore, letters and digits")
    return found[1]


def namespace(project_id: str, slug: str = "") -> str:
    """Name a project's namespace; the slug is for people and is cut, the id is not."""
    name = tail(project_id)
    room = LONGEST - len("gt--") - len(name)
    plain = re.sub(r"[^a-z0-9]+", "-", slug.lower())[:room].strip("-")
    return f"gt-{plain}-{name}" if plain else f"gt-{name}"


def anchor(lease_id: str, generation: int) -> str:
    """Name the object that owns everything of one generation of a lease."""
    return order_name(f"lse_{tail(lease_id)}", generation)


def on_node(lease_id: str, generation: int, rank: int, ranks: int) -> str:
    """Name what runs on one node of a lease; a lease on one node needs no number."""
    name = anchor(lease_id, generation)
    return fitted(name if ranks == 1 else f"{name}-{rank}", LONGEST_SET)


def peers(lease_id: str, generation: int) -> str:
    return fitted(f"{anchor(lease_id, generation)}-peers", LONGEST)


def keys(lease_id: str, generation: int) -> str:
    return fitted(f"keys-{tail(lease_id)}-v{generation}", LONGEST)


def claim(lease_id: str, generation: int, rank: int) -> str:
    """Name the claim for the devices of one node of a lease."""
    return fitted(f"{anchor(lease_id, generation)}-c{rank}", LONGEST)


def volume(volume_id: str) -> str:
    return f"v-{tail(volume_id)}"


def fitted(name: str, longest: int) -> str:
    """Return a name that is short enough: a longer one is cut and closed with a hash of all of it."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: longest - 12].rstrip('-')}--{digest}"  # no name of ours has two dashes in it by itself
