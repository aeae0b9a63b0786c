-- One column per gauge, named like it; each uses an index of just these rows.
SELECT lease.oldest AS gpubroker_queue_oldest_wait_seconds,
       email.pending AS gpubroker_emails_pending,
       email.oldest AS gpubroker_email_oldest_pending_seconds,
       (SELECT count(*) FROM billing_queuedemail WHERE undelivered_reason IN ('no_recipient', 'given_up'))
         AS gpubroker_emails_undeliverable,
       (SELECT count(*) FROM billing_invoice WHERE status IN ('finalized', 'partially_paid')) AS gpubroker_invoices_due,
       payment.pending AS gpubroker_payments_pending,
       payment.oldest AS gpubroker_payment_oldest_pending_seconds,
       payment.failing AS gpubroker_payments_failing,
       (SELECT count(*) FROM billing_payment WHERE status = 'stuck') AS gpubroker_payments_stuck,
       (SELECT count(*) FROM billing_refund WHERE status = 'stuck') AS gpubroker_refunds_stuck,
       (SELECT count(*) FROM billing_topup WHERE status = 'stuck') AS gpubroker_topups_stuck
  FROM (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(greatest(state_since, requeued_at))), 0)::float AS oldest
          FROM broker_lease WHERE state = 'queued' AND (requeued_at IS NULL OR requeued_at <= clock_timestamp())) lease,
       (SELECT count(*) AS pending,
               coalesce(extract(epoch FROM clock_timestamp() - min(made_at)), 0)::float AS oldest
          FROM billing_queuedemail WHERE due_at IS NOT NULL) email,
       (SELECT count(*) AS pending,
               coalesce(extract(epoch FROM clock_timestamp() - min(opened_at)), 0)::float AS oldest,
               count(*) FILTER (WHERE consecutive_failures > 0) AS failing
          FROM billing_payment WHERE status = 'pending') payment
