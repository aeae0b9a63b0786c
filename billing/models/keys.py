"""Default ids of each kind of row; functions, because migrations must be able to name them."""

from ports import ids

ID_LENGTH = 40


def invoice_id() -> str:
    return ids.new("inv")


def quote_id() -> str:
    return ids.new("quo")


def payment_id() -> str:
    return ids.new("pay")


def credit_note_id() -> str:
    return ids.new("crn")


def draw_id() -> str:
    return ids.new("drw")


def budget_id() -> str:
    return ids.new("bud")


def hold_id() -> str:
    return ids.new("hld")


def tax_rate_id() -> str:
    return ids.new("txr")


def grant_id() -> str:
    return ids.new("gra")


def return_id() -> str:
    return ids.new("ret")


def lapse_id() -> str:
    return ids.new("lap")


def card_form_id() -> str:
    return ids.new("crf")


def topup_id() -> str:
    return ids.new("top")


def campaign_id() -> str:
    return ids.new("cam")


def discount_id() -> str:
    return ids.new("dis")


def minimum_id() -> str:
    return ids.new("min")


def commitment_id() -> str:
    return ids.new("com")


def dispute_id() -> str:
    return ids.new("dsp")


def correction_id() -> str:
    return ids.new("cor")


def alert_id() -> str:
    return ids.new("bal")


def budget_stop_id() -> str:
    return ids.new("bst")


def letter_id() -> str:
    return ids.new("let")


def refund_id() -> str:
    return ids.new("ref")
