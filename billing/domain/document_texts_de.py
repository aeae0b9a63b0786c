"""German texts of documents, by their English original."""

from billing.domain.document_line_texts_de import GERMAN_LINE_TEXTS

GERMAN_MONTHS = (
    "Januar", "Februar", "März", "April", "Mai", "Juni",
    "Juli", "August", "September", "Oktober", "November", "Dezember",
)  # fmt: skip

GERMAN_TEXTS = {
    # Titles, heads and facts
    "Invoice": "Rechnung",
    "Credit note": "Gutschrift (Rechnungskorrektur)",
    "Account statement": "Kontoauszug",
    "{month}, not final": "{month}, nicht endgültig",
    "From": "Von",
    "Bill to": "Rechnung an",
    "For": "An",
    "Page {page} of {pages}": "Seite {page} von {pages}",
    "Why": "Grund",
    "DRAFT": "ENTWURF",
    "Issued": "Ausgestellt",
    "As of": "Stand",
    "Due": "Fällig",
    "Period": "Leistungszeitraum",
    "Time zone": "Zeitzone",
    "Currency": "Währung",
    "Invoice issued": "Rechnung vom",
    "Through": "Bis",
    "VAT number {number}": "USt-IdNr. {number}",
    # Columns
    "Description": "Beschreibung",
    "Quantity": "Menge",
    "Unit": "Einheit",
    "Price": "Preis",
    "Amount": "Betrag",
    "VAT": "USt",
    "Line amount": "Zeilenbetrag",
    "Credited": "Gutgeschrieben",
    "Day": "Tag",
    "Amount due": "Forderung",
    "Balance": "Guthaben",
    "Total due": "Offener Betrag",
    "New balance": "Neues Guthaben",
    # Units and quantities
    "h": "Std.",
    "GiB·h": "GiB·Std.",
    "month": "Monat",
    "{seconds} s": "{seconds} s",
    # Sums
    "Subtotal": "Zwischensumme",
    "VAT {rate} of {net}": "USt {rate} auf {net}",
    "VAT of {net}, rate unknown": "USt auf {net}, Satz unbekannt",
    "VAT in {currency}": "USt in {currency}",
    "Total": "Gesamtbetrag",
    "Paid by credits": "Durch Gutschriften bezahlt",
    "Paid from your balance": "Aus Ihrem Guthaben bezahlt",
    "Deducted from the amount due": "Vom offenen Betrag abgezogen",
    "Added to your balance": "Ihrem Guthaben zugeschrieben",
    "Returned to credits": "Den Gutschriften zugeschrieben",
    "Opening amount due": "Offener Betrag zu Beginn",
    "Closing amount due": "Offener Betrag am Ende",
    "Opening balance": "Guthaben zu Beginn",
    "Closing balance": "Guthaben am Ende",
    # Headlines
    "so far": "bisher",
    "A draft cannot be paid. It changes until its month is closed.": (
        "Ein Entwurf kann nicht bezahlt werden. Er ändert sich, bis der Monat abgeschlossen ist."
    ),
    "no amount due": "kein Betrag fällig",
    "due by {day}": "fällig bis {day}",
    "due": "fällig",
    "It is collected automatically.": "Der Betrag wird automatisch eingezogen.",
    "Pay by bank transfer with the reference {number}.": (
        "Bitte überweisen Sie den Betrag mit dem Verwendungszweck {number}."
    ),
    "Of {total}, {parts}.": "Von {total}: {parts}.",
    "{amount} paid by credits": "{amount} durch Gutschriften bezahlt",
    "{amount} paid from your balance": "{amount} aus Ihrem Guthaben bezahlt",
    " and ": " und ",
    "credited of invoice {invoice}": "gutgeschrieben zur Rechnung {invoice}",
    "The amount due is reduced by {amount}.": "Der offene Betrag verringert sich um {amount}.",
    "{amount} was already paid and is added to your balance, which pays your next invoice first.": (
        "{amount} waren bereits bezahlt und werden Ihrem Guthaben zugeschrieben, das Ihre nächste Rechnung zuerst"
        " bezahlt."
    ),
    "{amount} was paid by credits and is returned to them.": (
        "{amount} waren durch Gutschriften bezahlt und werden ihnen zugeschrieben."
    ),
    "due on {day}": "fällig am {day}",
    "balance on {day}": "Guthaben am {day}",
    "No amount is due.": "Es ist kein Betrag fällig.",
    "Your balance is {amount}.": "Ihr Guthaben beträgt {amount}.",
    # Notes
    "How amounts are calculated": "So werden Beträge berechnet",
    "Line amount = active seconds × slices × price per hour ÷ 3,600, summed over all leases of the line and rounded"
    " once (half away from zero). Queueing, starting and releasing are free.": (
        "Zeilenbetrag = aktive Sekunden × Slices × Preis je Stunde ÷ 3.600, summiert über alle Leases der Zeile und"
        " einmal kaufmännisch gerundet. Warten, Starten und Freigeben sind kostenlos."
    ),
    "Discounts": "Nachlässe",
    "Price tiers and discounts reduce the exact amount of a line before rounding:"
    " tiers first, then percentages in the order they were granted, then amounts. The bundle lists them.": (
        "Preisstaffeln und Nachlässe verringern den genauen Betrag einer Zeile vor dem Runden: zuerst Staffeln, dann"
        " Prozente in der Reihenfolge ihrer Gewährung, dann Beträge. Das Prüfpaket führt sie auf."
    ),
    "Your order": "Ihre Bestellung",
    "Cost report": "Kostenbericht",
    "for information": "zur Information",
    "No payment is due.": "Es ist nichts zu zahlen.",
    "Charged later": "Später berechnet",
    "These leases could not be observed at the end of the month. Their usage that is not listed above is charged with"
    " a later invoice: {leases}.": "Diese Leases konnten am Monatsende nicht beobachtet werden. Ihre Nutzung, die oben"
    " nicht aufgeführt ist, wird mit einer späteren Rechnung berechnet: {leases}.",
    "Replaces": "Ersetzt",
    "This invoice replaces invoice {number}, which credit note {notes} cancelled.": "Diese Rechnung ersetzt die"
    " Rechnung {number}, die durch die Gutschrift {notes} storniert wurde.",
    "Bank transfer": "Überweisung",
    "Account holder {name}": "Kontoinhaber {name}",
    "{account}. Reference:": "{account}. Verwendungszweck:",
    "Verify this invoice": "Diese Rechnung prüfen",
    "The invoice's bundle contains the state history of every lease and all prices. With it, verify.py recalculates"
    " every amount above on your own computer. Download both from the invoice's page.": (
        "Das Prüfpaket der Rechnung enthält die Zustände jeder Lease und alle Preise. verify.py berechnet damit jeden"
        " Betrag auf Ihrem eigenen Rechner neu. Laden Sie beides auf der Seite der Rechnung herunter."
    ),
    "Dispute a charge": "Einwände",
    "You can dispute any line on the invoice's page until the end of {day}. Disputed amounts are not collected until"
    " the dispute is resolved.": (
        "Sie können jede Zeile bis zum Ende des {day} auf der Seite der Rechnung beanstanden. Beanstandete Beträge"
        " werden bis zur Klärung nicht eingezogen."
    ),
    "Reverse charge: the customer owes the VAT (Article 196 of Directive 2006/112/EC).": (
        "Steuerschuldnerschaft des Leistungsempfängers (Artikel 196 der Richtlinie 2006/112/EG, Reverse Charge)."
    ),
    "Not subject to VAT here: the customer is established outside of where we owe it.": (
        "Hier nicht steuerbar: Der Leistungsempfänger ist außerhalb des Steuergebiets ansässig."
    ),
    "Converted at 1 {currency} = {rate} {own} ({source}, {day}).": (
        "Umgerechnet zu 1 {currency} = {rate} {own} ({source}, {day})."
    ),
    "Effect on the invoice": "Wirkung auf die Rechnung",
    "The invoice and its bundle do not change. Line numbers are those of the invoice.": (
        "Die Rechnung und ihr Prüfpaket ändern sich nicht. Die Zeilennummern sind die der Rechnung."
    ),
    "Source": "Herkunft",
    "Every row comes from the ledger, a double-entry record that never changes."
    " Amounts paid by credits are no longer due. Credits themselves are not included; the wallet shows them.": (
        "Jede Zeile stammt aus dem Hauptbuch mit doppelter Buchführung, das nie geändert wird. Durch Gutschriften"
        " bezahlte Beträge sind nicht mehr offen. Die Gutschriften selbst stehen in der Wallet."
    ),
    "Invoice {number} · {id} · {tenant}": "Rechnung {number} · {id} · {tenant}",
    "Credit note {number} · {id} · {tenant}": "Gutschrift {number} · {id} · {tenant}",
    "Account statement, {days} · {tenant}": "Kontoauszug, {days} · {tenant}",
    **GERMAN_LINE_TEXTS,
}
