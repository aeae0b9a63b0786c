"""Output of `nvidia-smi` in a simulated box, in the layout of the real program.

What no simulation can know (temperature, power, use, versions) is N/A.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from broker.domain.simulated_box.box_facts import BoxGpu

RULE, MIG_RULE = "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22, "-" * 18 + "+" + "-" * 34 + "+" + "-" * 11 + "+" + "-" * 23
WIDE_RULE = "+" + "-" * 89 + "+"
UNKNOWN = "[N/A]"
USAGE = "usage: nvidia-smi [-L] [--query-gpu=FIELD,… --format=csv[,noheader][,nounits]]"


def print_nvidia_smi(arguments: Sequence[str], gpus: Sequence[BoxGpu], *, time: str) -> tuple[str, int]:
    """Return what the program prints, and its exit code."""
    options = list(arguments)
    if not options:
        return "".join(f"{line}\n" for line in _table(gpus, time)), 0
    if options in (["-L"], ["--list-gpus"]):
        return "".join(f"{line}\n" for line in _list(gpus)), 0
    queries = [each.partition("=")[2] for each in options if each.startswith("--query-gpu=")]
    formats = [each.partition("=")[2].split(",") for each in options if each.startswith("--format=")]
    if len(queries) == len(formats) == 1 and len(options) == 2 and formats[0][0] == "csv":
        return _query(gpus, queries[0].split(","), formats[0][1:])
    return f"{USAGE}\nThis nvidia-smi is simulated and knows only these options.\n", 0 if options == ["-h"] else 2


def _by_gpu(gpus: Sequence[BoxGpu]) -> Iterator[tuple[int, BoxGpu, list[BoxGpu]]]:
    """Yield each physical GPU with its index and its MIG devices."""
    ordered = sorted(gpus, key=lambda gpu: gpu.uuid)
    for index, (_, group) in enumerate(groupby(ordered, key=lambda gpu: gpu.uuid)):
        members = list(group)
        yield index, members[0], [each for each in members if each.mig_uuid]


def _list(gpus: Sequence[BoxGpu]) -> Iterator[str]:
    for index, gpu, slices in _by_gpu(gpus):
        yield f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})"
        for device, each in enumerate(slices):
            yield f"  MIG {each.profile:<12} Device {device:>2}: (UUID: {each.mig_uuid})"


def _table(gpus: Sequence[BoxGpu], time: str) -> Iterator[str]:
    yield time
    yield WIDE_RULE
    yield f"| {'NVIDIA-SMI (simulated)':<38}{'Driver Version: N/A':<27}{'CUDA Version: N/A':<23}|"
    yield f"|{RULE}+"[:-1] + "|"
    yield "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |"
    yield "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |"
    yield "|                                         |                        |               MIG M. |"
    yield f"|{'=' * 41}+{'=' * 24}+{'=' * 22}|"
    for index, gpu, slices in _by_gpu(gpus):
        memory = f"{'0MiB':>9} /{gpu.total_mib:>7}MiB"
        mode = "Enabled" if slices else "Disabled"
        yield f"|{index:>4}  {gpu.name[:29]:<29} N/A  | {'N/A':>16}   N/A |{'N/A':>21} |"
        yield f"| N/A  {'N/A':>4}  N/A               N/A /  N/A |{memory:>23} |{'N/A':>8}      Default |"
        yield f"|{'':41}|{'':24}|{mode:>21} |"
        yield f"+{RULE}+"
    if any(gpu.mig_uuid for gpu in gpus):
        yield from _mig_table(gpus)
    yield ""
    yield WIDE_RULE
    yield f"| {'Processes:':<88}|"
    yield f"|{'  GPU   GI   CI        PID   Type   Process name':<76}{'GPU Memory':<13}|"
    yield f"|{'        ID   ID':<76}{'Usage':<13}|"
    yield f"|{'=' * 89}|"
    yield f"|{'  No running processes found':<89}|"
    yield WIDE_RULE


def _mig_table(gpus: Sequence[BoxGpu]) -> Iterator[str]:
    yield ""
    yield WIDE_RULE
    yield f"| {'MIG devices:':<88}|"
    yield f"+{MIG_RULE}+"
    yield f"| GPU  GI  CI  MIG |{'Memory-Usage ':>34}|{'Vol':>11}|{'Shared':^23}|"
    yield f"|      ID  ID  Dev |{'BAR1-Usage ':>34}| SM     Unc| CE ENC  DEC  OFA  JPG |"
    yield f"|{'':18}|{'':34}|{'ECC':>11}|{'':23}|"
    yield f"|{'=' * 18}+{'=' * 34}+{'=' * 11}+{'=' * 23}|"
    for index, _, slices in _by_gpu(gpus):
        for device, each in enumerate(slices):
            memory = f"0MiB /{each.memory_mib:>6}MiB"
            yield f"|{index:>3}  N/A N/A {device:>3}  |{memory:>29}     |N/A    N/A |{each.profile:^23}|"
            yield f"+{MIG_RULE}+"


def _query(gpus: Sequence[BoxGpu], names: Sequence[str], options: Sequence[str]) -> tuple[str, int]:
    unit = "" if "nounits" in options else " MiB"
    rows = []
    for index, gpu, _ in _by_gpu(gpus):
        known = {
            "index": str(index),
            "name": gpu.name,
            "gpu_name": gpu.name,
            "uuid": gpu.uuid,
            "gpu_uuid": gpu.uuid,
            "memory.total": f"{gpu.total_mib}{unit}",
            "memory.used": f"0{unit}",
            "memory.free": f"{gpu.total_mib}{unit}",
            "count": str(len({each.uuid for each in gpus})),
        }
        rows.append(", ".join(known.get(name.strip(), UNKNOWN) for name in names))
    if "noheader" not in options:
        rows.insert(0, ", ".join(_heading(name.strip(), unit) for name in names))
    return "".join(f"{row}\n" for row in rows), 0


def _heading(name: str, unit: str) -> str:
    return f"{name} [MiB]" if name.startswith("memory.") and unit else name
