"""An invoice beside the explanation of a line: nothing is printed over anything."""

import pytest
from playwright.sync_api import Browser

from tests.browser.portal import Portal

pytestmark = pytest.mark.browser
WIDER = """(selector) => [...document.querySelectorAll(selector)]
  .filter((each) => each.offsetParent && each.scrollWidth > each.clientWidth + 1)
  .map((each) => `${each.className}: ${each.scrollWidth} in ${each.clientWidth}`)"""
UNDER = """() => {
  const left = document.querySelector('.drawer').getBoundingClientRect().left;
  const panels = [...document.querySelectorAll('main .panel')];
  return panels.filter((each) => each.getBoundingClientRect().right > left).length;
}"""
LONG = """() => {
  for (const time of document.querySelectorAll('.drawer .dense-table time')) time.textContent = '26 Nov 10:33:05';
  for (const name of document.querySelectorAll('main tbody th .bold')) name.textContent = 'H200 NVL 141GB 3g.71gb';
  const long = 'hyperparameter-sweep-of-the-second-stage-2026-11-26-retry-0123456789';
  for (const name of document.querySelectorAll('.drawer summary .bold, main tbody th small')) name.textContent = long;
  for (const each of document.querySelectorAll(".drawer p.small")) each.append(` ${long}: ${"reason ".repeat(40)}`);
  for (const name of document.querySelectorAll('.drawer dd, .drawer dt')) name.append(' and what else there is to say');
}"""
CELLS = "main .table td, main .table th, .drawer td, .drawer th, .drawer dd, .drawer dt"


@pytest.mark.parametrize("width", [1280, 1366, 1440])
def test_the_explanation_prints_over_no_column(portal: Portal, chromium: Browser, width: int) -> None:
    with portal.context(chromium, viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        for address in (f"/invoices/{portal.invoice}/?line=2", f"/invoices/{portal.declined}/?line=1"):
            page.goto(address)
            for _ in range(2):
                assert page.evaluate(WIDER, f".drawer-body, main .table-scroll, {CELLS}") == []
                assert page.evaluate(UNDER) == 0, "panels lie under the drawer"
                page.evaluate(LONG)
    assert portal.complaints == []
