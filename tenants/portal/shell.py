"""What the frame of every page shows about where one is: the open project, and where one may switch to."""

from dataclasses import dataclass
from typing import Any

MOST = 30  # other projects


@dataclass(frozen=True)
class Place:
    """A project one may work in, or another tenant one belongs to."""

    id: str
    name: str
    tenant: str

    @property
    def initial(self) -> str:
        return self.name[:1].upper() or "–"


def places(request: Any) -> tuple[Place | None, tuple[Place, ...]]:
    """Return the open project and others; nothing on pages that entered no tenant.

    Where there are more projects than a menu should hold, the rest are opened from the page of projects.
    """
    visitor = getattr(request, "visitor", None)
    if visitor is None or not hasattr(request, "projects"):
        return None, ()
    here = visitor.tenant
    open_one = request.project
    others = [Place(p.pk, p.name, here.name) for p in request.projects if p.pk != open_one.pk][:MOST]
    tenants = [Place(ident, name, "another tenant") for ident, name in visitor.tenants if ident != here.pk]
    return Place(open_one.pk, open_one.name, here.name) if open_one else None, (*others, *tenants)
