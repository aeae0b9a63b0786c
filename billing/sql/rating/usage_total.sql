-- After usage_costs.sql: the sum of all lines. An invoice line is a project's use of one price version, which belongs to one
-- offering. Reversed charges are subtracted from it, and never exceed what was charged.
SELECT coalesce(sum(div(2 * exact * %(scale)s + %(per_unit)s, 2 * %(per_unit)s::numeric)), 0)::bigint
  FROM (SELECT sum(extract(epoch FROM e - s)::bigint * quantity * nano) AS exact
          FROM mine GROUP BY project_id, version) line
