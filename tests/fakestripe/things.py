"""Objects of the fake Stripe, and how they change.

Everything is a plain mapping, as the API tells it; whatever changes is an event.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Thing = dict[str, Any]
Params = dict[str, Any]


class Refusal(Exception):
    """Refusal by Stripe."""

    def __init__(self, status: int, **error: Any) -> None:
        super().__init__(error.get("message"))
        self.status, self.error = status, {"type": "invalid_request_error", **error}


@dataclass
class Things:
    kept: dict[str, dict[str, Thing]] = field(default_factory=dict)
    events: list[Thing] = field(default_factory=list)
    clock: Callable[[], int] = lambda: 0
    total_off: int = 0
    refund_as: str = "succeeded"  # what a refund is called at first
    refund_refused: str = ""  # with which code every refund is turned down
    least: int = 0  # what Stripe collects at least; less goes to a balance of its own
    _next: "count[int]" = field(default_factory=lambda: count(1))

    def all(self, kind: str) -> dict[str, Thing]:
        return self.kept.setdefault(kind, {})

    def make(self, kind: str, prefix: str, **fields: Any) -> Thing:
        thing = {
            "id": f"{prefix}_{next(self._next):06d}",
            "object": kind,
            "created": self.clock(),
            "livemode": False,
            **fields,
        }
        self.all(kind)[thing["id"]] = thing
        return thing

    def get(self, kind: str, pk: str) -> Thing:
        if pk not in self.all(kind):
            raise Refusal(404, code="resource_missing", param="id", message=f"No such {kind}: '{pk}'")
        return self.all(kind)[pk]

    def tell(self, what: str, thing: Thing) -> Thing:
        event = {
            "id": f"evt_{next(self._next):06d}",
            "object": "event",
            "type": what,
            "api_version": "2026-10-28.endive",
            "created": self.clock(),
            "livemode": False,
            "data": {"object": copy.deepcopy(thing)},
        }
        self.events.append(event)
        return event


def listed(things: list[Thing], params: Params, path: str) -> Thing:
    """Answer with a page, the latest first."""
    since = params.get("created", {})
    if since:
        things = [each for each in things if each["created"] >= int(since.get("gte", 0))]
        things = [each for each in things if each["created"] <= int(since.get("lte", 10**12))]
        things = [each for each in things if each["created"] < int(since.get("lt", 10**12))]
    things = things[::-1]
    ids = [each["id"] for each in things]
    at = ids.index(params["starting_after"]) + 1 if "starting_after" in params else 0
    size = int(params.get("limit", 10))
    page = things[at : at + size]
    return {"object": "list", "url": path, "has_more": at + size < len(things), "data": page}


# Customers and cards


def new_customer(things: Things, params: Params) -> Thing:
    return things.make("customer", "cus", name=params.get("name"), metadata=params.get("metadata", {}))


def customers(things: Things, params: Params) -> Thing:
    wanted = params["query"].split("'")
    found = [each for each in things.all("customer").values() if each["metadata"].get(wanted[1]) == wanted[3]]
    return {"object": "search_result", "url": "/v1/customers/search", "has_more": False, "data": found}


def new_session(things: Things, params: Params) -> Thing:
    if params["customer"] not in things.all("customer"):
        raise Refusal(400, code="resource_missing", param="customer", message="No such customer.")
    made = things.make(
        "checkout.session",
        "cs_test",
        mode=params["mode"],
        customer=params["customer"],
        status="open",
        setup_intent=None,
        metadata=params.get("metadata", {}),
        success_url=params["success_url"],
        cancel_url=params.get("cancel_url"),
    )
    made["url"] = f"https://checkout.stripe.com/c/pay/{made['id']}"
    return made


def session(things: Things, pk: str, params: Params) -> Thing:
    found = copy.deepcopy(things.get("checkout.session", pk))
    if found["setup_intent"] and "setup_intent" in params.get("expand", []):
        intent = copy.deepcopy(things.get("setup_intent", found["setup_intent"]))
        found["setup_intent"] = intent
    return found


def fill_in(things: Things, session_id: str, *, number: str = "4242", how: str = "ok") -> Thing:
    """Type a card into Stripe's form; `how` decides its charges."""
    form = things.get("checkout.session", session_id)
    card = {"brand": "visa", "last4": number, "exp_month": 7, "exp_year": 2029}
    method = things.make("payment_method", "pm", type="card", customer=form["customer"], card=card, how=how, next=[])
    intent = things.make(
        "setup_intent",
        "seti",
        status="succeeded",
        customer=form["customer"],
        payment_method=method["id"],
        usage="off_session",
    )
    form.update(status="complete", setup_intent=intent["id"])
    things.tell("setup_intent.succeeded", intent)
    things.tell("checkout.session.completed", form)
    return method


def card(things: Things, pk: str, params: Params) -> Thing:
    return things.get("payment_method", pk)


def detach(things: Things, pk: str, params: Params) -> Thing:
    found = things.get("payment_method", pk)
    found["customer"] = None
    return found


# Invoices


def new_invoice(things: Things, params: Params) -> Thing:
    if params["customer"] not in things.all("customer"):
        raise Refusal(400, code="resource_missing", param="customer", message="No such customer.")
    number = params.get("number")
    if number and any(each["number"] == number for each in things.all("invoice").values()):
        raise Refusal(400, code="invoice_number_taken", param="number", message="The invoice number is taken.")
    invoice = things.make(
        "invoice",
        "in",
        status="draft",
        customer=params["customer"],
        currency=params["currency"],
        number=number,
        metadata=params.get("metadata", {}),
        auto_advance=params.get("auto_advance") == "true",
        collection_method=params["collection_method"],
        lines=[],
        total=0,
        amount_due=0,
        amount_paid=0,
        amount_remaining=0,
        starting_balance=0,
        payments=[],
    )
    things.tell("invoice.created", invoice)
    return shown_invoice(things, invoice, {})


def shown_invoice(things: Things, invoice: Thing, params: Params) -> Thing:
    """Write an invoice as the API does."""
    shown = copy.deepcopy(invoice)
    shown["lines"] = {
        "object": "list",
        "data": shown["lines"],
        "has_more": False,
        "url": f"/v1/invoices/{invoice['id']}/lines",
    }
    payments = []
    for intent_id in reversed(invoice["payments"]):
        intent = things.get("payment_intent", intent_id)
        wide = "payments.data.payment.payment_intent" in params.get("expand", [])
        payment = {"type": "payment_intent", "payment_intent": copy.deepcopy(intent) if wide else intent_id}
        payments.append({"id": f"inpay_{intent_id}", "object": "invoice_payment", "payment": payment, "status": "open"})
    shown["payments"] = {
        "object": "list",
        "data": payments,
        "has_more": False,
        "url": "/v1/invoice_payments",
    }
    if "payments.data.payment.payment_intent" not in params.get("expand", []):
        del shown["payments"]  # it is only told on request
    return shown


def invoice(things: Things, pk: str, params: Params) -> Thing:
    found = things.get("invoice", pk)
    answer = shown_invoice(things, found, params)
    settle_slow(things, found)
    return answer


def settle_slow(things: Things, found: Thing) -> None:
    """Settle a slow payment at its second read."""
    for intent_id in found["payments"]:
        intent = things.get("payment_intent", intent_id)
        if intent["status"] == "processing" and not intent.get("patient"):
            intent["status"] = "succeeded"
            paid(things, found, intent)


def bank_pays(things: Things, found: Thing) -> None:
    """Settle a payment whose bank did not answer."""
    for intent_id in found["payments"]:
        things.get("payment_intent", intent_id).pop("patient", None)
    settle_slow(things, found)


def invoices(things: Things, params: Params) -> Thing:
    found = [
        each
        for each in things.all("invoice").values()
        if params.get("customer") in (None, each["customer"]) and params.get("status") in (None, each["status"])
    ]
    page = listed(found, params, "/v1/invoices")
    return {**page, "data": [shown_invoice(things, each, {}) for each in page["data"]]}


def _draft(things: Things, pk: str) -> Thing:
    found = things.get("invoice", pk)
    if found["status"] != "draft":
        raise Refusal(400, code="invoice_not_editable", message="Finalized invoices can't be changed.")
    return found


def add_lines(things: Things, pk: str, params: Params) -> Thing:
    found = _draft(things, pk)
    for each in params["lines"]:
        taxes = [
            {"amount": int(tax["amount"]), "taxable_amount": int(tax["taxable_amount"])}
            for tax in each.get("tax_amounts", [])
        ]
        line = {
            "id": f"il_{next(things._next):06d}",
            "object": "line_item",
            "amount": int(each["amount"]),
            "description": each["description"],
            "metadata": each.get("metadata", {}),
            "taxes": taxes,
        }
        found["lines"].append(line)
    if len(found["lines"]) > 250:
        raise Refusal(400, code="invoice_lines_limit", message="An invoice has at most 250 lines.")
    found["total"] = sum(line["amount"] + sum(tax["amount"] for tax in line["taxes"]) for line in found["lines"])
    found["total"] += things.total_off
    owed = max(found["total"] + things.get("customer", found["customer"]).get("balance", 0), 0)
    found["amount_due"] = found["amount_remaining"] = owed if owed >= things.least else 0
    return shown_invoice(things, found, {})


def finalize(things: Things, pk: str, params: Params) -> Thing:
    found = _draft(things, pk)
    found["status"] = "open"
    things.tell("invoice.finalized", found)
    return shown_invoice(things, found, {})


def delete(things: Things, pk: str, params: Params) -> Thing:
    _draft(things, pk)
    del things.all("invoice")[pk]
    return {"id": pk, "object": "invoice", "deleted": True}


def pay(things: Things, pk: str, params: Params) -> Thing:
    found = things.get("invoice", pk)
    if found["status"] == "paid":
        raise Refusal(400, code="invoice_already_paid", message="Invoice is already paid.")
    if found["status"] != "open":
        raise Refusal(400, code="invoice_not_open", message="The invoice can't be paid.")
    method = things.all("payment_method").get(params.get("payment_method", ""))
    if method is None or method["customer"] != found["customer"]:
        raise Refusal(400, code="resource_missing", param="payment_method", message="No such payment method.")
    intent = things.make(
        "payment_intent",
        "pi",
        status="processing",
        amount=found["amount_remaining"],
        currency=found["currency"],
        customer=found["customer"],
        last_payment_error=None,
        latest_charge=None,
    )
    found["payments"].append(intent["id"])
    how = method["next"].pop(0) if method["next"] else method["how"]
    return HOW[how](things, found, intent)


def _paid(things: Things, found: Thing, intent: Thing) -> Thing:
    intent["status"] = "succeeded"
    paid(things, found, intent)
    return shown_invoice(things, found, {})


def paid(things: Things, found: Thing, intent: Thing) -> None:
    charge = things.make(
        "charge",
        "ch",
        status="succeeded",
        amount=intent["amount"],
        payment_intent=intent["id"],
        currency=found["currency"],
        amount_refunded=0,
    )
    intent["latest_charge"] = charge["id"]
    found.update(status="paid", amount_paid=intent["amount"], amount_remaining=0)
    things.tell("payment_intent.succeeded", intent)
    things.tell("charge.succeeded", charge)
    things.tell("invoice.paid", found)


def _declined(things: Things, found: Thing, intent: Thing) -> Thing:
    error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": "insufficient_funds",
        "message": "Your card has insufficient funds.",
    }
    intent.update(status="requires_payment_method", last_payment_error=error)
    things.tell("payment_intent.payment_failed", intent)
    things.tell("invoice.payment_failed", found)
    raise Refusal(402, **error)


def _action(things: Things, found: Thing, intent: Thing) -> Thing:
    intent["status"] = "requires_action"
    things.tell("invoice.payment_action_required", found)
    raise Refusal(
        402,
        type="card_error",
        code="invoice_payment_intent_requires_action",
        message="Your card was declined. This transaction requires authentication.",
    )


def _slow(things: Things, found: Thing, intent: Thing) -> Thing:
    return shown_invoice(things, found, {})


def _silent(things: Things, found: Thing, intent: Thing) -> Thing:
    intent["patient"] = True  # until somebody tells its end
    return shown_invoice(things, found, {})


HOW = {"ok": _paid, "declined": _declined, "action": _action, "slow": _slow, "silent": _silent}


def void(things: Things, pk: str, params: Params) -> Thing:
    found = things.get("invoice", pk)
    if found["status"] not in ("open", "uncollectible"):
        raise Refusal(400, code="invoice_not_open", message="You can only void an open invoice.")
    found["status"] = "void"
    for intent_id in found["payments"]:
        things.get("payment_intent", intent_id)["status"] = "canceled"
    things.tell("invoice.voided", found)
    return shown_invoice(things, found, {})


def invoice_payments(things: Things, params: Params) -> Thing:
    wanted = params["payment"]["payment_intent"]
    found = [
        {
            "id": f"inpay_{wanted}",
            "object": "invoice_payment",
            "invoice": each["id"],
            "payment": {"type": "payment_intent", "payment_intent": wanted},
            "status": "paid",
        }
        for each in things.all("invoice").values()
        if wanted in each["payments"]
    ]
    return {"object": "list", "url": "/v1/invoice_payments", "has_more": False, "data": found}


# What comes afterwards


def new_refund(things: Things, params: Params) -> Thing:
    intent = things.get("payment_intent", params["payment_intent"])
    charge = things.get("charge", intent["latest_charge"])
    amount = int(params.get("amount", charge["amount"] - charge["amount_refunded"]))
    if amount > charge["amount"] - charge["amount_refunded"]:
        raise Refusal(
            400,
            code="amount_too_large",
            param="amount",
            message="Refund amount is greater than what is left of the charge.",
        )
    if things.refund_refused:
        raise Refusal(400, code=things.refund_refused, message="It is not refunded now.")
    charge["amount_refunded"] += amount
    made = things.make(
        "refund",
        "re",
        status=things.refund_as,
        amount=amount,
        currency=charge["currency"],
        payment_intent=intent["id"],
        charge=charge["id"],
        metadata=params.get("metadata", {}),
        reason=None,
    )
    things.tell("refund.created", made)
    things.tell("charge.refunded", charge)
    return made


def refund(things: Things, pk: str, params: Params) -> Thing:
    return things.get("refund", pk)


def refunds(things: Things, params: Params) -> Thing:
    return listed(list(things.all("refund").values()), params, "/v1/refunds")


def disputed(things: Things, invoice_id: str) -> Thing:
    """Dispute a charge as its cardholder."""
    found = things.get("invoice", invoice_id)
    intent = things.get("payment_intent", found["payments"][-1])
    made = things.make(
        "dispute",
        "du",
        status="needs_response",
        amount=intent["amount"],
        currency=found["currency"],
        payment_intent=intent["id"],
        charge=intent["latest_charge"],
        reason="fraudulent",
    )
    things.tell("charge.dispute.created", made)
    return made


def dispute(things: Things, pk: str, params: Params) -> Thing:
    return things.get("dispute", pk)


def disputes(things: Things, params: Params) -> Thing:
    return listed(list(things.all("dispute").values()), params, "/v1/disputes")


def events(things: Things, params: Params) -> Thing:
    wanted = params.get("types")
    found = [each for each in things.events if wanted is None or each["type"] in wanted]
    return listed(found, params, "/v1/events")


def event(things: Things, pk: str, params: Params) -> Thing:
    return next(each for each in things.events if each["id"] == pk)


ID = r"/([a-z_]+_[0-9]+)"
# Method, path, the SDK's type of its parameters, what it does.
ROUTES: list[tuple[str, str, str, Callable[..., Thing]]] = [
    ("post", "/v1/customers", "CustomerCreateParams", new_customer),
    ("get", "/v1/customers/search", "CustomerSearchParams", customers),
    ("post", "/v1/checkout/sessions", "checkout.SessionCreateParams", new_session),
    ("get", f"/v1/checkout/sessions{ID}", "checkout.SessionRetrieveParams", session),
    ("get", f"/v1/payment_methods{ID}", "PaymentMethodRetrieveParams", card),
    ("post", f"/v1/payment_methods{ID}/detach", "PaymentMethodDetachParams", detach),
    ("post", "/v1/invoices", "InvoiceCreateParams", new_invoice),
    ("get", "/v1/invoices", "InvoiceListParams", invoices),
    ("get", f"/v1/invoices{ID}", "InvoiceRetrieveParams", invoice),
    ("delete", f"/v1/invoices{ID}", "InvoiceDeleteParams", delete),
    ("post", f"/v1/invoices{ID}/add_lines", "InvoiceAddLinesParams", add_lines),
    ("post", f"/v1/invoices{ID}/finalize", "InvoiceFinalizeInvoiceParams", finalize),
    ("post", f"/v1/invoices{ID}/pay", "InvoicePayParams", pay),
    ("post", f"/v1/invoices{ID}/void", "InvoiceVoidInvoiceParams", void),
    ("get", "/v1/invoice_payments", "InvoicePaymentListParams", invoice_payments),
    ("post", "/v1/refunds", "RefundCreateParams", new_refund),
    ("get", "/v1/refunds", "RefundListParams", refunds),
    ("get", f"/v1/refunds{ID}", "RefundRetrieveParams", refund),
    ("get", "/v1/disputes", "DisputeListParams", disputes),
    ("get", f"/v1/disputes{ID}", "DisputeRetrieveParams", dispute),
    ("get", "/v1/events", "EventListParams", events),
    ("get", f"/v1/events{ID}", "EventRetrieveParams", event),
]
