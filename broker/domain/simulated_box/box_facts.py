"""Facts of a simulated box: its GPUs, if any, host, user and environment."""

from dataclasses import dataclass

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
    def title(self) -> str:
        """Return what the box calls itself."""
        return "Simulated GPU box" if self.gpus else "Simulated box without a GPU"

    @property
    def notice(self) -> str:
        """Return the sentence that says that nothing is executed."""
        return f"{self.title}: commands are imitated, nothing is executed."

    @property
    def cpus(self) -> int:
        """Return the number of CPUs, rounded up; at least one."""
        return max(-(-self.cpu_milli // 1000), 1)

    def environment(self) -> dict[str, str]:
        """Return the variables that the box's shell starts with."""
        devices = ",".join(dict.fromkeys(gpu.mig_uuid or gpu.uuid for gpu in self.gpus))
        gpu_variables = {"NVIDIA_VISIBLE_DEVICES": devices} if devices else {}
        return {
            "HOME": self.home,
            "HOSTNAME": self.hostname,
            "LANG": "C.UTF-8",
            **gpu_variables,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "SHELL": "/bin/bash",
            "USER": self.user,
            **dict(self.env),
        }
