"""Every setting is written down as it is."""

from pathlib import Path

from config.operator import as_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_the_page_of_settings_is_printed_from_their_declaration() -> None:
    # To mend: python -c "from config.operator import as_markdown; print(as_markdown(), end='')" > docs/settings.md
    assert PAGE.read_text() == as_markdown()
