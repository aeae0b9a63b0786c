"""Check of names and docstrings against docs/glossary.md."""

from pathlib import Path

import pytest

from deploy import glossary_check

GLOSSARY = (Path(__file__).parents[2] / "docs/glossary.md").read_text()
BANNED = glossary_check.read_banned_names(GLOSSARY)
REPLACED = glossary_check.read_replaced_words(GLOSSARY)


def faults(folder: Path, **files: str) -> list[str]:
    definitions = []
    for name, text in files.items():
        file = folder / f"{name}.py"
        file.write_text(text)
        definitions += list(glossary_check.find_definitions(file))
    return list(glossary_check.find_faults(definitions, BANNED, REPLACED))


def test_banned_and_replaced_words_are_read_from_the_glossary() -> None:
    assert {"utils", "helpers", "manager", "told", "room"} <= BANNED
    assert {"doorbell", "wall", "sighting", "as_door"} <= REPLACED


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("told", "", "module told"),
        ("invoice", "class Helpers: ...", "class Helpers"),
        ("invoice", "def told() -> None: ...", "function told"),
        ("invoice", "class Invoice:\n    def doorbell(self) -> None: ...", "function doorbell"),
        ("knocking", "", "module knocking"),
        ("cluster_believing", "", "module cluster_believing"),
        ("invoice", f'"""{"word " * 21}"""', "more than 20 words"),
    ],
)
def test_a_name_that_is_not_allowed_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert any(said in line for line in faults(tmp_path, **{name: text}))


def test_a_class_name_used_three_times_is_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, a="class Slice: ...", b="class Slice: ...") == []
    assert any(
        "class Slice" in line
        for line in faults(tmp_path, a="class Slice: ...", b="class Slice: ...", c="class Slice: ...")
    )


def test_private_functions_and_nouns_of_the_field_are_allowed(tmp_path: Path) -> None:
    assert (
        faults(tmp_path, lease_rating="def _told() -> None: ...\n\ndef rate() -> None:\n    def look() -> None: ...")
        == []
    )


def test_a_long_first_line_is_reported(tmp_path: Path) -> None:
    (tmp_path / "invoice.py").write_text(f'"""{"word " * 16}"""')
    found = list(glossary_check.find_definitions(tmp_path / "invoice.py"))
    assert len(list(glossary_check.find_long_summaries(found))) == 1
    assert list(glossary_check.find_faults(found, BANNED, REPLACED)) == []


def test_the_product_follows_the_glossary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert glossary_check.main() == 0
