"""Events of a running line in a simulated box: outputs and pauses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoxOutput:
    """Text that a command prints."""

    text: str
    is_error: bool = False
    is_notice: bool = False  # said by the box, whatever the command's output is redirected to

    @property
    def is_piped(self) -> bool:
        """Return whether the next command of a pipeline reads it."""
        return not self.is_error and not self.is_notice


@dataclass(frozen=True, slots=True)
class BoxPause:
    """Time that passes; None: until the box ends."""

    seconds: float | None


BoxEvent = BoxOutput | BoxPause
