"""What is handed out: PDFs, pictures of their pages, bundles, and the word of a program that has nothing of ours."""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import typst

from billing.domain.papers import Paper
from billing.models import CreditNote, Invoice
from billing.services import bundles
from billing.services.papers import keeping
from billing.services.papers.credit_notes import of_credit_note
from billing.services.papers.invoices import of_invoice
from billing.services.papers.printing import FOLDER, TEMPLATE, fonts
from billing.verify import verify
from tenants.services.walls import as_tenant

DOTS_PER_INCH = 110


@dataclass
class Handed:
    """What lies in the folder, and what whoever checked it found."""

    papers: int = 0
    pages: int = 0
    invoices: int = 0
    lines: int = 0
    leases: int = 0
    wrong: list[str] = field(default_factory=list)


def hand_out(folder: Path, invoices: list[Invoice], note: CreditNote | None, *, now: datetime) -> Handed:
    """Write everything into the folder, and have each bundle checked where only Python's own library is."""
    found = Handed()
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "verify.py"
    shutil.copyfile(verify.__file__, script)
    for invoice in invoices:
        with as_tenant(invoice.tenant_id):
            handed = keeping.invoice_paper(invoice, now=now)
            (folder / handed.name).write_bytes(handed.pdf)
            found.pages += _pictured(of_invoice(invoice), folder / handed.name, at=now)
        found.papers += 1
        _checked(folder, script, invoice, found)
    if note:
        with as_tenant(note.tenant_id):
            note = CreditNote.objects.select_related("invoice__period", "invoice__tenant").get(pk=note.pk)
            handed = keeping.credit_note_paper(note, now=now)
            (folder / handed.name).write_bytes(handed.pdf)
            found.pages += _pictured(of_credit_note(note), folder / handed.name, at=now)
        found.papers += 1
    return found


def bundled(invoice: Invoice) -> bytes:
    with as_tenant(invoice.tenant_id):
        made = bundles.bundle(invoice)
    return b"".join(made)


def _checked(folder: Path, script: Path, invoice: Invoice, found: Handed) -> None:
    raw = bundled(invoice)
    path = folder / bundles.file_name(invoice)
    path.write_bytes(raw)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", str(script), str(path)],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        found.wrong.append(f"{path.name}: {ran.stdout}{ran.stderr}")
    read = verify.read(raw)
    found.invoices += 1
    found.lines += len(read.lines)
    found.leases += len(read.leases)


def _pictured(paper: Paper, beside: Path, *, at: datetime) -> int:
    """Draw each page of a paper as a picture; return how many there are."""
    drawn = typst.compile(
        TEMPLATE,
        root=FOLDER,
        font_paths=fonts(""),
        ignore_system_fonts=True,
        format="png",
        ppi=DOTS_PER_INCH,
        sys_inputs={"paper": paper.text()},
        timestamp=at.replace(microsecond=0),
    )
    pages = drawn if isinstance(drawn, list) else [drawn]
    for n, page in enumerate(pages, 1):
        beside.with_name(f"{beside.stem}{f'-{n}' if len(pages) > 1 else ''}.png").write_bytes(page)
    return len(pages)
