"""What must be true of charges and of the books, asked of the rows themselves. Must run as staff."""

from datetime import datetime

from broker.services import proofs as capacity
from broker.services.proofs import Claim, Proof

# Rating runs every half minute; a lease that ended longer ago than this has its charges.
RATED_AFTER_S = 120
# What an older release writes during an upgrade is booked by the next look (ledger/catching_up.py), each ten minutes.
BOOKED_AFTER_S = 1800

CLAIMS = (
    Claim(
        "charged is active",
        "Every lease that ended is charged for exactly the seconds it was active.",
        f"""
        SELECT l.id FROM {capacity.RECENT} l
          LEFT JOIN LATERAL (
               SELECT sum(extract(epoch FROM n.at - t.at) * t.quantity) AS seconds
                 FROM broker_transition t JOIN broker_transition n ON n.lease_id = t.lease_id AND n.seq = t.seq + 1
                WHERE t.lease_id = l.id AND t.after = 'active') used ON true
          LEFT JOIN LATERAL (
               SELECT sum(c.unit_seconds) AS seconds FROM billing_ratedcharge c
                WHERE c.lease_id = l.id AND c.kind = 'usage') charged ON true
         WHERE l.ended_at < %(now)s::timestamptz - interval '{RATED_AFTER_S} s'
           AND coalesce(used.seconds, 0) <> coalesce(charged.seconds, 0)
        """,
    ),
    Claim(
        "no charge without use",
        "Every charge lies inside a stretch of the ledger in which its lease was active.",
        f"""
        SELECT c.lease_id || '#' || c.seq FROM {capacity.RECENT} l JOIN billing_ratedcharge c
            ON c.lease_id = l.id AND c.correction_id = ''
          LEFT JOIN broker_transition t ON t.lease_id = c.lease_id AND t.seq = c.seq
          LEFT JOIN broker_transition n ON n.lease_id = c.lease_id AND n.seq = c.seq + 1
         WHERE t.after IS DISTINCT FROM 'active' OR c.s < t.at OR c.e > n.at OR n.at IS NULL
        """,
    ),
    Claim(
        "promised is charged",
        "Every charge of a lease that cites a quote is at the price that was promised.",
        f"""
        SELECT c.lease_id || '#' || c.seq FROM {capacity.RECENT} l
          JOIN billing_quote q ON q.lease_id = l.id
          JOIN billing_ratedcharge c ON c.lease_id = l.id AND c.offering_id = q.offering_id AND c.correction_id = ''
         WHERE c.price_version_id <> q.price_version_id OR c.exact_num <> c.unit_seconds * q.nano_per_hour::numeric
        """,
    ),
    Claim(
        "given back is charged",
        "What a start that was taken back gave back is, to the second and the amount, what was charged for it.",
        f"""
        SELECT a.lease_id || '#' || a.seq FROM {capacity.RECENT} l
          JOIN billing_ratedcharge a ON a.lease_id = l.id AND a.kind = 'adjust' AND a.correction_id = ''
          LEFT JOIN billing_ratedcharge c
            ON (c.lease_id, c.seq, c.price_version_id, c.period_id, c.meter, c.part)
             = (a.lease_id, a.seq, a.price_version_id, a.period_id, a.meter, a.part) AND c.kind = 'usage'
         WHERE (c.s, c.e, c.unit_seconds, c.exact_num) IS DISTINCT FROM (a.s, a.e, -a.unit_seconds, -a.exact_num)
        """,
    ),
    Claim(
        "corrected as approved",
        "Corrections of open months are charged as approved, to the second and the amount, and nothing else is.",
        """
        SELECT h.correction_id || ' ' || h.tenant_id
          FROM billing_correctionshare h
         CROSS JOIN LATERAL (
               SELECT coalesce(sum(c.unit_seconds), 0) AS seconds, coalesce(sum(c.exact_num), 0) AS exact
                 FROM billing_ratedcharge c
                WHERE c.correction_id = h.correction_id AND c.tenant_id = h.tenant_id
                  AND c.lease_id IN (SELECT p.lease_id FROM billing_correctionpart p WHERE p.share_id = h.id)) charged
         CROSS JOIN LATERAL (
               SELECT coalesce(sum(p.unit_seconds), 0) AS seconds, coalesce(sum(p.exact_num), 0) AS exact
                 FROM billing_correctionpart p WHERE p.share_id = h.id AND NOT p.final) approved
         WHERE h.status = 'booked' AND h.settled_at > %(now)s::timestamptz - interval '2 days'
           AND (charged.seconds, charged.exact) <> (approved.seconds, approved.exact)
         UNION ALL
        SELECT c.correction_id || ' ' || c.lease_id
          FROM billing_ratedcharge c
         WHERE c.correction_id <> '' AND c.recorded_at > %(now)s::timestamptz - interval '2 days' AND NOT EXISTS (
               SELECT FROM billing_correctionshare h JOIN billing_correctionpart p ON p.share_id = h.id AND NOT p.final
                WHERE h.correction_id = c.correction_id AND p.lease_id = c.lease_id AND (p.s, p.e) = (c.s, c.e))
        """,
    ),
    Claim(
        "free starts are given back",
        "What was taken back soon after its start costs nothing; what a final invoice has of it needs a credit note.",
        f"""
        SELECT DISTINCT c.lease_id || '#' || c.seq FROM {capacity.RECENT} l
          JOIN broker_transition n ON n.lease_id = l.id AND n.before = 'active' AND n.reason = 'preempted'
         CROSS JOIN LATERAL (
               SELECT t.seq, t.at FROM broker_transition t
                WHERE t.lease_id = n.lease_id AND t.seq < n.seq AND t.after = 'active' AND t.before <> 'active'
                ORDER BY t.seq DESC LIMIT 1) run
          JOIN billing_ratedcharge c
            ON c.lease_id = l.id AND c.seq >= run.seq AND c.seq < n.seq AND c.kind = 'usage'
          JOIN billing_priceversion v
            ON v.id = c.price_version_id AND v.free_start_s > extract(epoch FROM n.at - run.at)
         WHERE l.ended_at < %(now)s::timestamptz - interval '{RATED_AFTER_S} s'
           AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                            WHERE a.lease_id = c.lease_id AND a.seq = c.seq AND a.kind = 'adjust'
                              AND a.correction_id = '')
        """,
    ),
    Claim(
        "months are what they carry",
        "Every line of an invoice that became final lately has of its month what was written for it, and is never below"
        " nought.",
        """
        SELECT i.id FROM billing_invoice i
          LEFT JOIN LATERAL (
               SELECT sum(l.month_num) AS num, min(l.exact_num) AS least FROM billing_invoiceline l
                WHERE l.invoice_id = i.id) lines ON true
          LEFT JOIN LATERAL (
               SELECT sum(m.exact_num) AS num FROM billing_monthcharge m
                WHERE m.billed_period_id = i.period_id AND m.tenant_id = i.tenant_id) carried ON true
         WHERE i.finalized_at > %(now)s::timestamptz - interval '2 days' AND i.status <> 'void'
           AND (coalesce(lines.num, 0) <> coalesce(carried.num, 0) OR lines.least < 0)
        """,
    ),
    Claim(
        "nothing runs unpriced",
        "Every active lease has a price this second.",
        """
        SELECT l.id FROM broker_lease l JOIN tenants_tenant tn ON tn.id = l.tenant_id
         WHERE l.state = 'active' AND NOT EXISTS (
               SELECT FROM billing_quote q WHERE q.lease_id = l.id AND q.offering_id = l.offering_id) AND NOT EXISTS (
               SELECT FROM billing_priceversion p WHERE p.offering_id = l.offering_id
                  AND (p.tenant_id IS NULL OR p.tenant_id = l.tenant_id)
                  AND p.currency = tn.currency AND p.valid @> %(now)s::timestamptz)
        """,
    ),
    Claim(
        "held before it runs",
        "Every lease that runs below a budget holds money in it.",
        """
        SELECT l.id FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
         WHERE l.state IN ('queued', 'provisioning', 'active')
           AND EXISTS (SELECT FROM billing_budget b WHERE b.project_id = ANY(p.path) AND NOT EXISTS (
                       SELECT FROM billing_hold o JOIN billing_holdpart h ON h.hold_id = o.id
                         JOIN billing_budgetmonth m ON m.id = h.month_id
                        WHERE o.lease_id = l.id AND m.budget_id = b.id))
        """,
    ),
    Claim(
        "budgets are what was held",
        "Every month of a budget has taken what its holds took, and what was settled there is what was charged.",
        """
        SELECT m.budget_id FROM billing_budgetmonth m
          LEFT JOIN LATERAL (
               SELECT coalesce(sum(h.num), 0) AS taken, coalesce(sum(h.spent_num), 0) AS spent
                 FROM billing_holdpart h WHERE h.month_id = m.id) parts ON true
          JOIN billing_billingperiod p ON p.id = m.period_id
         WHERE p.span @> %(now)s::timestamptz
           AND (m.taken_num, m.spent_num) <> (m.base_num + parts.taken, m.base_num + parts.spent)
         UNION ALL
        SELECT o.lease_id FROM billing_hold o JOIN billing_holdpart h ON h.hold_id = o.id
          JOIN billing_budgetmonth m ON m.id = h.month_id
          JOIN LATERAL (
               SELECT coalesce(sum(c.exact_num), 0) AS num FROM billing_ratedcharge c
                WHERE c.lease_id = o.lease_id AND c.period_id = m.period_id AND c.correction_id = '') charged ON true
         WHERE o.settled_at > %(now)s::timestamptz - interval '2 days'
           AND (h.num <> charged.num OR h.spent_num <> charged.num)
        """,
    ),
    Claim(
        "books balance",
        "In every currency debits equal credits, and nothing is left where invoices only pass through.",
        """
        SELECT a.currency FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
         GROUP BY a.currency
        HAVING sum(CASE WHEN a.type IN ('wallet_paid', 'wallet_promo', 'revenue', 'tax_payable', 'breakage')
                        THEN -b.minor ELSE b.minor END) <> 0
            OR bool_or(a.type = 'accrued' AND b.minor <> 0)
        """,
    ),
    Claim(
        "what is due is owed",
        "What is still to be paid of every invoice that the ledger was told of lately is what it says is owed for it.",
        """
        SELECT i.id FROM billing_invoice i
          JOIN LATERAL (
               SELECT coalesce(sum(CASE WHEN d.type = 'receivable' THEN t.minor ELSE 0 END
                                   - CASE WHEN c.type = 'receivable' THEN t.minor ELSE 0 END), 0) AS minor
                 FROM billing_ledgertransfer t
                 JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
                 JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
                WHERE t.idem > (i.id || ':') COLLATE "C" AND t.idem < (i.id || ';') COLLATE "C") owed ON true
         WHERE i.id IN (SELECT l.ref FROM billing_ledgertransfer l
                         WHERE l.recorded_at > %(now)s::timestamptz - interval '2 days')
           AND owed.minor <> CASE WHEN i.status IN ('finalized', 'uncollectible') THEN i.total - i.settled ELSE 0 END
        """,
    ),
    Claim(
        "balances are what was given back",
        "Every tenant's balance is what credit notes and top-ups put there, and no invoice or refund took since.",
        """
        SELECT tenant_id FROM (
               SELECT tenant_id, currency, total - off_due - to_grants AS minor FROM billing_creditnote
                UNION ALL
               SELECT tenant_id, currency, minor FROM billing_topup WHERE status = 'succeeded'
                UNION ALL
               SELECT d.tenant_id, i.currency, -d.minor
                 FROM billing_balancedraw d JOIN billing_invoice i ON i.id = d.invoice_id
                UNION ALL
               SELECT tenant_id, currency, -minor FROM billing_refund
                WHERE status <> 'declined' AND returned_at IS NULL
                UNION ALL
               SELECT a.tenant_id, a.currency, -b.minor
                 FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
                WHERE a.type = 'wallet_paid') moved
         GROUP BY tenant_id, currency HAVING sum(minor) <> 0
        """,
    ),
    Claim(
        "grants are what is left of them",
        "On every grant's account is what was given, less what it paid and what lapsed, and what came back to it.",
        """
        SELECT grant_id FROM (
               SELECT id AS grant_id, minor FROM billing_grant
                UNION ALL
               SELECT grant_id, -minor FROM billing_grantdraw
                UNION ALL
               SELECT grant_id, minor FROM billing_grantreturn WHERE NOT lapsed
                UNION ALL
               SELECT grant_id, -minor FROM billing_grantlapse
                UNION ALL
               SELECT a.ref, -b.minor
                 FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
                WHERE a.type = 'wallet_promo') moved
         GROUP BY grant_id HAVING sum(minor) <> 0
        """,
    ),
    Claim(
        "invoices are in the books",
        "Every invoice that became final lately, every payment and every credit note of one is posted in the ledger.",
        f"""
        SELECT i.id FROM billing_invoice i
         WHERE i.finalized_at BETWEEN %(now)s::timestamptz - interval '2 days'
                                  AND %(now)s::timestamptz - interval '{BOOKED_AFTER_S} s'
           AND i.total <> 0
           AND NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (i.id || ':total') COLLATE "C")
         UNION ALL
        SELECT p.id FROM billing_payment p
         WHERE p.status = 'succeeded'
           AND p.settled_at BETWEEN %(now)s::timestamptz - interval '2 days'
                                AND %(now)s::timestamptz - interval '{BOOKED_AFTER_S} s'
           AND NOT EXISTS (
               SELECT FROM billing_ledgertransfer t WHERE t.idem = (p.invoice_id || ':' || p.id) COLLATE "C")
         UNION ALL
        SELECT n.id FROM billing_creditnote n
         WHERE n.issued_at > %(now)s::timestamptz - interval '2 days'
           AND NOT EXISTS (SELECT FROM billing_ledgertransfer t
                            WHERE t.idem = (n.invoice_id || ':' || n.id || ':subtotal') COLLATE "C")
        """,
    ),
)
EVERY = (*capacity.CLAIMS, *CLAIMS)  # the fleet's first


def check(*, now: datetime) -> list[Proof]:
    """Look at every claim there is; one query."""
    return capacity.check(EVERY, now=now)
