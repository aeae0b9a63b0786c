"""German texts of invoice lines and statement entries, by their English original."""

GERMAN_LINE_TEXTS = {
    # Lines
    "All projects": "Alle Projekte",
    "{n} lease": "{n} Lease",
    "{n} leases": "{n} Leases",
    "{n} volume": "{n} Volume",
    "{n} volumes": "{n} Volumes",
    "on-demand": "auf Abruf",
    "reserved": "reserviert",
    "spot": "Spot",
    "per GiB": "je GiB",
    ", {seconds} s refunded": ", {seconds} s erstattet",
    ", from {day}": ", ab {day}",
    ", until {day}": ", bis {day}",
    "estimate until the month is closed": "Schätzung bis zum Monatsabschluss",
    "Unused commitment": "Nicht genutzte Abnahmeverpflichtung",
    "Minimum spend": "Mindestumsatz",
    "commitment": "Abnahmeverpflichtung",
    "graduated price": "gestaffelter Preis",
    "volume price": "Mengenpreis",
    "packages": "Pakete",
    # Statement entries
    "Invoice {}": "Rechnung {}",
    "Payment of invoice {}": "Zahlung der Rechnung {}",
    "Invoice {} voided": "Rechnung {} storniert",
    "Credit note {}": "Gutschrift {}",
    "Invoice {} paid from your balance": "Rechnung {} aus Ihrem Guthaben bezahlt",
    "Top-up {}": "Aufladung {}",
    "Refund of invoice {} to your payment card": "Erstattung der Rechnung {} auf Ihre Zahlungskarte",
    "Failed refund of invoice {} to your payment card": "Fehlgeschlagene Erstattung der Rechnung {}",
    "Invoice {} paid by credits": "Rechnung {} durch Gutschriften bezahlt",
}
