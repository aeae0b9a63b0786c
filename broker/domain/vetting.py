"""What a tenant may not ask of a workload, each with the words for it: everything wrong is told at once."""

import base64
import binascii
import re
import shlex
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker.domain.images import image_fault
from broker.domain.workloads import TEMPLATES, Template, Workload

MOST_VARIABLES, LONGEST_NAME, LONGEST_VALUE, LONGEST_ENV = 100, 128, 8192, 32_768
LONGEST_COMMAND = 2000
MOST_KEYS, LONGEST_KEY = 20, 8192
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
KEY_KINDS = {
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
}
# By the beginning of a name: who reads it before the tenant's program does.
NOT_THEIRS = {
    "NVIDIA_": "it chooses cards for the container, and the lease has chosen",
    "CUDA_DEVICE_": "it sets the limits of a shared card",
    "CUDA_DISABLE_CONTROL": "it lifts the limits of a shared card",
    "CUDA_MPS_": "it leads to the daemon that shares a card",
    "CUDA_TASK_PRIORITY": "it ranks programs on a shared card",
    "GPU_CORE_UTILIZATION_POLICY": "it lifts the limits of a shared card",
    "LIBCUDA_LOG_LEVEL": "it steers the library that shares a card",
    "LD_PRELOAD": "it puts code before that of the card's own libraries",
    "LD_AUDIT": "it puts code before that of the card's own libraries",
    "KUBERNETES_": "the cluster sets it",
    "GPUBROKER_": "the broker sets it",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that cannot be meant: the field, what is wrong, what to do."""

    field: str
    text: str
    fix: str


def workload_faults(workload: Workload) -> tuple[Fault, ...]:
    """Say everything that is wrong with a workload; none means it can be rendered."""
    template = TEMPLATES.get(workload.template)
    if template is None:
        known = ", ".join(TEMPLATES)
        text = f"There is no workload {workload.template[:60]!r}."
        return (Fault("workload", text, f"Choose one of {known}."),)
    return (
        *_image(workload, template),
        *_command(workload, template),
        *_env(dict(workload.env), twice=len(dict(workload.env)) < len(workload.env)),
        *_keys(workload, template),
    )


def _image(workload: Workload, template: Template) -> Iterator[Fault]:
    if not workload.image and not template.image:
        yield Fault("image", f"{template.label} needs one, and none is named.", "Name an image.")
    elif workload.image and (text := image_fault(workload.image)):
        yield Fault("image", text, "Write it as docker pull would take it.")


def _command(workload: Workload, template: Template) -> Iterator[Fault]:
    command = workload.command
    if len(command) > LONGEST_COMMAND:
        text = f"A command has at most {LONGEST_COMMAND} characters."
        yield Fault("command", text, "Put what is longer into a script of the image.")
    if CONTROL.search(command):
        yield Fault("command", "A command holds no control characters.", "Write it by hand once more.")
    elif not template.in_shell:
        try:
            shlex.split(command)
        except ValueError:
            yield Fault("command", "A quote in the command is not closed.", "Close it, or escape it with \\.")


def _env(env: Mapping[str, str], *, twice: bool) -> Iterator[Fault]:
    if twice:
        yield Fault("env", "A variable is set twice.", "Set each variable once.")
    if len(env) > MOST_VARIABLES:
        text = f"{len(env)} variables are set; at most {MOST_VARIABLES} are."
        yield Fault("env", text, "Put the others into a file of the image or a volume.")
        return
    if sum(len(name) + len(value) for name, value in env.items()) > LONGEST_ENV:
        text = f"All variables together have at most {LONGEST_ENV} characters."
        yield Fault("env", text, "Put long values into a file of the image or a volume.")
        return
    for name, value in env.items():
        yield from _variable(name, value)


def _variable(name: str, value: str) -> Iterator[Fault]:
    if not VARIABLE.fullmatch(name) or len(name) > LONGEST_NAME:
        text = f"{name[:60]!r} is no name of a variable."
        yield Fault("env", text, f"Use letters, digits and _, at most {LONGEST_NAME}, no digit first.")
        return
    for beginning, why in NOT_THEIRS.items():
        if name.upper().startswith(beginning):
            yield Fault("env", f"{name} cannot be set: {why}.", f"Leave {name} out.")
    if len(value) > LONGEST_VALUE:
        text = f"The value of {name} has {len(value)} characters; at most {LONGEST_VALUE} are taken."
        yield Fault("env", text, "Put it into a file of the image or a volume.")
    if CONTROL.search(value):
        yield Fault("env", f"The value of {name} holds control characters.", "Encode it, as base64 does.")


def _keys(workload: Workload, template: Template) -> Iterator[Fault]:
    if template.wants_keys and not workload.ssh_keys:
        text = f"Nobody could enter: {template.label} needs the public key of whoever shall."
        yield Fault("ssh_keys", text, "Paste the line of ~/.ssh/id_ed25519.pub.")
    if len(workload.ssh_keys) > MOST_KEYS:
        text = f"{len(workload.ssh_keys)} keys were given; at most {MOST_KEYS} open one box."
        yield Fault("ssh_keys", text, "Leave some out.")
        return
    for number, key in enumerate(workload.ssh_keys, start=1):
        if text := key_fault(key):
            yield Fault("ssh_keys", f"Key {number}: {text}", "Paste the line of ~/.ssh/id_ed25519.pub.")


def key_fault(key: str) -> str:
    """Say what is wrong with one line of authorized_keys; options are not taken, for they run commands."""
    if "PRIVATE KEY" in key:
        return "that is the private half; keep it to yourself and paste the public one."
    if len(key) > LONGEST_KEY or CONTROL.search(key) or "\n" in key or "\t" in key:
        return "a key is one line of plain text."
    words = key.split(" ")
    if words[0] not in KEY_KINDS or len(words) < 2:
        return f"it begins with one of {', '.join(sorted(KEY_KINDS))}, then the key itself."
    try:
        body = base64.b64decode(words[1], validate=True)
    except binascii.Error:
        return "the key itself is damaged."
    if _first_field(body) != words[0].encode():
        return "the key itself is damaged: it is of another kind than it says."
    return ""


def _first_field(body: bytes) -> bytes:
    """Return the first length-prefixed field of a key, which repeats its kind."""
    if len(body) < 4:
        return b""
    (length,) = struct.unpack(">I", body[:4])
    return body[4 : 4 + length]
