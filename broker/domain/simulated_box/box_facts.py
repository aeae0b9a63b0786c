"""Facts of a simulated GPU box: its GPUs, host, user and environment."""

from dataclasses import dataclass

NOTICE = "Simulated GPU box: commands are imitated, nothing is executed."
PAGE_PORT = 8080  # of the little web page inside the box
DEFAULT_USER, DEFAULT_HOME = "gpubroker", "/home/gpubroker"


@dataclass(frozen=True, slots=True)
class BoxGpu:
    """A GPU of a box: whole, a share, or one MIG device."""

    name: str  # NVIDIA H100 SXM 80GB
    uuid: str
    memory_mib: int  # that the box may use
    gpu_memory_mib: int = 0  # of the whole GPU; zero: the same
    profile: str = ""  # of a MIG device
    mig_uuid: str = ""  # of a MIG device

    @property
    def total_mib(self) -> int:
        """Return the memory of the whole GPU."""
        return self.gpu_memory_mib or self.memory_mib


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """Everything that the programs of a box report."""

    gpus: tuple[BoxGpu, ...] = ()
    hostname: str = "box"
    user: str = DEFAULT_USER
    home: str = DEFAULT_HOME
    env: tuple[tuple[str, str], ...] = ()  # with the values of secrets, as any program of the box sees them
    cpu_milli: int = 0
    memory_mib: int = 0
    scratch_mib: int = 0
    volume_gib: int = 0  # mounted at home; zero: none

    @property
    def cpus(self) -> int:
        """Return the number of CPUs, rounded up; at least one."""
        return max(-(-self.cpu_milli // 1000), 1)

    def environment(self) -> dict[str, str]:
        """Return the variables that the box's shell starts with."""
        devices = ",".join(dict.fromkeys(gpu.mig_uuid or gpu.uuid for gpu in self.gpus))
        return {
            "HOME": self.home,
            "HOSTNAME": self.hostname,
            "LANG": "C.UTF-8",
            "NVIDIA_VISIBLE_DEVICES": devices or "void",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "SHELL": "/bin/bash",
            "USER": self.user,
            **dict(self.env),
        }
