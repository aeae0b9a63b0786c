"""PDFs, page images and verified bundles of the demo."""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import typst

from billing.domain.documents import Document
from billing.models import CreditNote, Invoice
from billing.services.documents import document_store, invoice_bundles
from billing.services.documents.credit_note_documents import credit_note_document
from billing.services.documents.invoice_documents import invoice_document
from billing.services.documents.pdf_rendering import FOLDER, TEMPLATE, load_fonts
from billing.verify import verify
from tenants.services.rls import tenant_scope

DOTS_PER_INCH = 110


@dataclass
class CheckedDocuments:
    """What lies in the folder, and what whoever checked it found."""

    papers: int = 0
    pages: int = 0
    invoices: int = 0
    lines: int = 0
    leases: int = 0
    wrong: list[str] = field(default_factory=list)


def hand_out(folder: Path, invoices: list[Invoice], note: CreditNote | None, *, now: datetime) -> CheckedDocuments:
    """Write all files, and verify each bundle with plain Python."""
    found = CheckedDocuments()
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "verify.py"
    shutil.copyfile(verify.__file__, script)
    for invoice in invoices:
        with tenant_scope(invoice.tenant_id):
            handed = document_store.invoice_pdf(invoice, now=now)
            (folder / handed.name).write_bytes(handed.pdf)
            found.pages += _pictured(invoice_document(invoice), folder / handed.name, at=now)
        found.papers += 1
        _checked(folder, script, invoice, found)
    if note:
        with tenant_scope(note.tenant_id):
            note = CreditNote.objects.select_related("invoice__period", "invoice__tenant").get(pk=note.pk)
            handed = document_store.credit_note_pdf(note, now=now)
            (folder / handed.name).write_bytes(handed.pdf)
            found.pages += _pictured(credit_note_document(note), folder / handed.name, at=now)
        found.papers += 1
    return found


def bundled(invoice: Invoice) -> bytes:
    with tenant_scope(invoice.tenant_id):
        made = invoice_bundles.build_bundle(invoice)
    return b"".join(made)


def _checked(folder: Path, script: Path, invoice: Invoice, found: CheckedDocuments) -> None:
    raw = bundled(invoice)
    path = folder / invoice_bundles.bundle_file_name(invoice)
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


def _pictured(paper: Document, beside: Path, *, at: datetime) -> int:
    """Render each page of a document as an image; return how many there are."""
    drawn = typst.compile(
        TEMPLATE,
        root=FOLDER,
        font_paths=load_fonts(""),
        ignore_system_fonts=True,
        format="png",
        ppi=DOTS_PER_INCH,
        sys_inputs={"document": paper.text()},
        timestamp=at.replace(microsecond=0),
    )
    pages = drawn if isinstance(drawn, list) else [drawn]
    for n, page in enumerate(pages, 1):
        beside.with_name(f"{beside.stem}{f'-{n}' if len(pages) > 1 else ''}.png").write_bytes(page)
    return len(pages)
