"""Comparison of schemas: renamings, removals and spacing."""

import pytest

from tests.schema.statements import apply_changes, comparable, normalise, parse, parse_changes

CHANGES = parse_changes(
    """# a comment
minor	minor_units
hold	reservation
at	made_at	billing_quote
no room	no capacity
dead_code
old		billing_quote
"""
)


@pytest.mark.parametrize(
    ("stored", "renamed"),
    [
        ("ALTER TABLE t ADD COLUMN minor bigint;", "ALTER TABLE t ADD COLUMN minor_units bigint;"),
        ("ALTER TABLE t ADD COLUMN minor_of bigint;", "ALTER TABLE t ADD COLUMN minor_of bigint;"),
        ("(hold.minor, held)", "(reservation.minor_units, held)"),
        ("ALTER TABLE billing_quote ADD COLUMN at;", "ALTER TABLE billing_quote ADD COLUMN made_at;"),
        ("ALTER TABLE broker_step ADD COLUMN at;", "ALTER TABLE broker_step ADD COLUMN at;"),
        ("RAISE EXCEPTION 'no room';", "RAISE EXCEPTION 'no capacity';"),
    ],
)
def test_only_whole_words_are_renamed_everywhere_or_in_listed_tables(stored: str, renamed: str) -> None:
    assert apply_changes([stored], CHANGES) == [renamed]


def test_names_that_were_swapped_are_both_renamed() -> None:
    assert apply_changes(["f(a, b)"], parse_changes("a\tb\nb\ta\n")) == ["f(b, a)"]


def test_statements_listed_without_a_new_name_are_removed() -> None:
    stored = ["DROP dead_code;", "dead_code2", "old t", "old billing_quote"]
    assert apply_changes(stored, CHANGES) == ["dead_code2", "old t"]


@pytest.mark.parametrize(
    ("found", "normal"),
    [
        (
            "ALTER TABLE t ADD CONSTRAINT t_of_id_0123abcd_fk_u_id FOREIGN KEY (of_id) REFERENCES u(id);",
            "ALTER TABLE t ADD CONSTRAINT (generated) FOREIGN KEY (of_id) REFERENCES u(id);",
        ),
        (
            "CREATE UNIQUE INDEX t_pkey ON t USING btree (id);",
            "CREATE UNIQUE INDEX (generated) ON t USING btree (id);",
        ),
        ("CREATE INDEX t_waits ON t USING btree (id);", "CREATE INDEX t_waits ON t USING btree (id);"),
        ("BEGIN\n\n  -- why\n  x := '--'; -- so\nEND", "BEGIN\n    x := '--';\n  END"),
        (
            "CREATE OR REPLACE VIEW v AS\n SELECT t.id FROM t WHERE (t.n > 0);",
            "CREATE OR REPLACE VIEW v AS\n   SELECT id FROM t WHERE (n > 0);",
        ),
        (
            "CREATE OR REPLACE VIEW v AS\n SELECT t.id FROM t JOIN u ON true;",
            "CREATE OR REPLACE VIEW v AS\n   SELECT t.id FROM t JOIN u ON true;",
        ),
    ],
    ids=["foreign key", "primary key", "chosen name", "comments", "view of one table", "view of two tables"],
)
def test_a_statement_is_normalised(found: str, normal: str) -> None:
    assert normalise(found) == normal


def test_the_comparison_ignores_spacing_but_not_the_order_of_words() -> None:
    assert comparable(["f( a,\n  b )"]) == comparable(["f(a, b)"]) != comparable(["f(b, a)"])


def test_a_stored_description_is_read_statement_by_statement() -> None:
    assert parse("-- head\na\n  more\nb\n") == ["a\n  more", "b"]
