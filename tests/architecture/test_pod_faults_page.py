"""The page of pod faults shows the product's table."""

from tests.architecture.pod_faults import DOCUMENT, to_markdown


def test_the_page_of_pod_faults_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == to_markdown(), "run python -m tests.architecture.pod_faults"
