"""Project switcher of the page layout: the open project, and other choices."""

from dataclasses import dataclass
from typing import Any

MAX_OTHER_PROJECTS = 30  # other projects in the menu


@dataclass(frozen=True)
class SwitcherEntry:
    """A project the visitor may work in, or another tenant."""

    id: str
    name: str
    tenant: str

    @property
    def initial(self) -> str:
        return self.name[:1].upper() or "–"


def switcher_entries(request: Any) -> tuple[SwitcherEntry | None, tuple[SwitcherEntry, ...]]:
    """Return the open project and other choices; empty on pages outside a tenant.

    Projects beyond the menu's limit are opened from the projects page.
    """
    visitor = getattr(request, "visitor", None)
    if visitor is None or not hasattr(request, "projects"):
        return None, ()
    here = visitor.tenant
    open_one = request.project
    others = [SwitcherEntry(p.pk, p.name, here.name) for p in request.projects if p.pk != open_one.pk][
        :MAX_OTHER_PROJECTS
    ]
    tenants = [SwitcherEntry(ident, name, "another tenant") for ident, name in visitor.tenants if ident != here.pk]
    return SwitcherEntry(open_one.pk, open_one.name, here.name) if open_one else None, (*others, *tenants)
