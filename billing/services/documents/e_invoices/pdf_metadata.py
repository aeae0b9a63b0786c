"""XMP metadata of PDF/A files, as its validators read it.

XMP is RDF/XML with rules of its own: `rdf:RDF` has an attribute and `rdf:Description` says what it is about.
factur-x writes neither, and veraPDF then finds no metadata at all.
"""

from io import BytesIO

from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, StreamObject

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
CORRECTIONS = (
    (b"<rdf:RDF>", f'<rdf:RDF xmlns:rdf="{RDF}">'.encode()),
    (b"<rdf:Description>", b'<rdf:Description rdf:about="">'),
)


def correct_metadata(pdf: bytes) -> bytes:
    """Return a PDF whose XMP metadata keeps the rules of XMP."""
    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf)))
    stream = _metadata_stream(writer.root_object)
    stream.set_data(_corrected(stream.get_data()))
    made = BytesIO()
    writer.write(made)
    return made.getvalue()


def read_metadata(pdf: bytes) -> bytes:
    """Return the XMP metadata of a PDF."""
    return _metadata_stream(PdfReader(BytesIO(pdf)).root_object).get_data()


def _metadata_stream(root: DictionaryObject) -> StreamObject:
    stream = root["/Metadata"].get_object()
    assert isinstance(stream, StreamObject)
    return stream


def _corrected(xmp: bytes) -> bytes:
    for wrong, right in CORRECTIONS:
        xmp = xmp.replace(wrong, right)
    return xmp
