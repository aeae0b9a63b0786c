"""Record which of the product's own files a call passes.

A file counts once if the body of at least one of its functions runs, a model's property or a manager's method
included. Module bodies (imports), migrations, tests and other people's packages do not count.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[2]
OWN = tuple(f"{ROOT}/{layer}/" for layer in ("broker", "billing", "tenants", "web", "ports", "config"))
NOT_A_FUNCTION = ("<module>",)


class PassedFiles:
    """The own files passed, each with the functions that ran."""

    def __init__(self) -> None:
        self._codes = set[CodeType]()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Record the function that begins; a profile function of the interpreter."""
        if event == "call":
            self._codes.add(frame.f_code)

    @property
    def functions(self) -> dict[str, list[str]]:
        """Return the functions by file, both sorted."""
        found: dict[str, set[str]] = {}
        for code in self._codes:
            own = code.co_filename.startswith(OWN) and "/migrations/" not in code.co_filename
            if own and code.co_name not in NOT_A_FUNCTION and not _is_class_body(code):
                found.setdefault(str(Path(code.co_filename).relative_to(ROOT)), set()).add(code.co_qualname)
        return {name: sorted(found[name]) for name in sorted(found)}


def _is_class_body(code: CodeType) -> bool:
    """Return whether a class statement runs; only a function has optimised local variables."""
    return not code.co_flags & 0x1  # inspect.CO_OPTIMIZED


@contextmanager
def passed_files() -> Iterator[PassedFiles]:
    """Record until the block ends; a profiler that was there before takes over again."""
    passed, before = PassedFiles(), sys.getprofile()
    sys.setprofile(passed.note)
    try:
        yield passed
    finally:
        sys.setprofile(before)
