"""The default values render unchanged, and an option changes only its own part."""

from pathlib import Path

from tests.chart.rendering import ADDRESS, CHART, FULL, helm, text

GOLDEN = Path(__file__).parent / "golden"
# To mend, after looking at the difference: REWRITE_GOLDEN=1 python -m pytest tests/chart/test_defaults.py
MEND = "REWRITE_GOLDEN"


def compare(name: str, rendered: str, *, rewrite: bool) -> None:
    file = GOLDEN / name
    if rewrite:
        file.write_text(rendered)
    assert rendered == file.read_text(), f"{name} changed; if it was meant to: {MEND}=1"


def test_default_values_render_the_golden_file(rewrite: bool) -> None:
    compare("defaults.yaml", text(ADDRESS), rewrite=rewrite)


def test_full_values_render_the_golden_file(rewrite: bool) -> None:
    # Less what the code generates: tests/chart/test_generated.py compares that with the code itself.
    compare("full.yaml", text({**FULL, "cluster": {"leases": False}}), rewrite=rewrite)


def test_helm_lint_passes_in_strict_mode() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), values=ADDRESS)
