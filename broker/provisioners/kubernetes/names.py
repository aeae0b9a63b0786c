"""Names of our objects, derived from ids and generations alone.

The same thing therefore always has the same name.
"""

import hashlib
import re

from broker.provisioners.base import spec_name

MAX_NAME = 63
MAX_STATEFUL_SET_NAME = 52  # its controller puts the name and a hash into a pod label
ID = re.compile(r"[a-z]{3}_([0-9a-z]{1,40})", re.ASCII)


def id_suffix(any_id: str) -> str:
    """Return the part of an id used in names; ValueError for a foreign id."""
    found = ID.fullmatch(any_id)
    if found is None:
        raise ValueError(f"{any_id!r} is not a valid ID: three letters, an underscore, letters and digits")
    return found[1]


def namespace_name(project_id: str, slug: str = "") -> str:
    """Return a project's namespace name.

    The slug is for people and may be shortened; the id is never shortened.
    """
    name = id_suffix(project_id)
    room = MAX_NAME - len("gt--") - len(name)
    plain = re.sub(r"[^a-z0-9]+", "-", slug.lower())[:room].strip("-")
    return f"gt-{plain}-{name}" if plain else f"gt-{name}"


def anchor_name(lease_id: str, generation: int) -> str:
    """Return the name of the object that owns one generation's objects."""
    return spec_name(f"lse_{id_suffix(lease_id)}", generation)


def controller_name(lease_id: str, generation: int, rank: int, ranks: int) -> str:
    """Return the controller name on one node; a single-node lease has no number."""
    name = anchor_name(lease_id, generation)
    return shorten_name(name if ranks == 1 else f"{name}-{rank}", MAX_STATEFUL_SET_NAME)


def peers_name(lease_id: str, generation: int) -> str:
    return shorten_name(f"{anchor_name(lease_id, generation)}-peers", MAX_NAME)


def secret_name(lease_id: str, generation: int) -> str:
    return shorten_name(f"keys-{id_suffix(lease_id)}-v{generation}", MAX_NAME)


def pull_secret_name(lease_id: str, generation: int) -> str:
    return shorten_name(f"pull-{id_suffix(lease_id)}-v{generation}", MAX_NAME)


def resource_claim_name(lease_id: str, generation: int, rank: int) -> str:
    """Return the ResourceClaim name for one node of a lease."""
    return shorten_name(f"{anchor_name(lease_id, generation)}-c{rank}", MAX_NAME)


def volume_name(volume_id: str) -> str:
    return f"v-{id_suffix(volume_id)}"


def shorten_name(name: str, longest: int) -> str:
    """Return a name within a length limit, shortened with a hash if necessary."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: longest - 12].rstrip('-')}--{digest}"  # no unshortened name contains two dashes
