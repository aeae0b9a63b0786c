"""Generators of row ids, one per prefix, as functions that migrations import."""

from functools import partial

from ports import ids

ID_LENGTH = 40

invoice_id = partial(ids.new, "inv")
quote_id = partial(ids.new, "quo")
payment_id = partial(ids.new, "pay")
credit_note_id = partial(ids.new, "crn")
payment_draw_id = partial(ids.new, "drw")
budget_id = partial(ids.new, "bud")
hold_id = partial(ids.new, "hld")
tax_rate_id = partial(ids.new, "txr")
exchange_rate_id = partial(ids.new, "exr")
grant_id = partial(ids.new, "gra")
grant_return_id = partial(ids.new, "ret")
grant_expiry_id = partial(ids.new, "lap")
payment_card_form_id = partial(ids.new, "crf")
topup_id = partial(ids.new, "top")
campaign_id = partial(ids.new, "cam")
discount_id = partial(ids.new, "dis")
minimum_id = partial(ids.new, "min")
commitment_id = partial(ids.new, "com")
dispute_id = partial(ids.new, "dsp")
correction_id = partial(ids.new, "cor")
budget_alert_id = partial(ids.new, "bal")
budget_stop_id = partial(ids.new, "bst")
queued_email_id = partial(ids.new, "let")
refund_id = partial(ids.new, "ref")
approval_request_id = partial(ids.new, "apr")
bank_receipt_id = partial(ids.new, "bkr")
bank_receipt_part_id = partial(ids.new, "bkp")
bank_statement_id = partial(ids.new, "bks")
bank_entry_id = partial(ids.new, "bke")
write_off_id = partial(ids.new, "wro")
