"""Finds every form of a page, and fills one in with values that are not valid."""

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

WRONG = "§ wrong §"
# Fields in which one types; search forms and choices are no part of the walk.
SCRIPT = """
const typed = (form) => [...form.elements].filter((each) => !each.readOnly && !each.disabled && each.matches(
  'textarea, input:is([type=text], [type=number], [type=email], [type=date], [type=datetime-local])'));
const posted = () => [...document.forms].filter((each) => each.method === 'post'
  && each.closest('main, [popover], dialog'));
const VALID = { 'date': '2026-12-24', 'datetime-local': '2026-12-24T10:00' };
"""
FIND = f"""() => {{ {SCRIPT}
  return posted().map((form) => ({{
    action: new URL(form.action).pathname,
    hidden: [...form.elements].filter((each) => each.type === 'hidden' && each.name !== 'csrfmiddlewaretoken')
      .map((each) => each.name).join(),
    names: typed(form).map((each) => each.name),
  }}));
}}"""
# The first required field stays empty; the others are wrong, but days, which a browser takes only if they are right.
SEND = f"""([index, wrong]) => {{ {SCRIPT}
  const form = posted()[index], fields = typed(form);
  const empty = fields.find((each) => each.required);
  const sent = {{}};
  for (const each of fields) {{
    if (each.type in VALID && each !== empty) each.value = sent[each.name] = VALID[each.type];
    else {{
      const counted = each.type === 'number' || each.type in VALID;
      if (each.localName === 'input') each.type = 'text';
      each.value = each === empty ? '' : wrong;
      if (each !== empty && !counted) sent[each.name] = each.value;
    }}
  }}
  form.noValidate = true;
  form.requestSubmit([...form.elements].find((each) => each.matches('button:not([type=button])')));
  return sent;
}}"""
STATE = """() => {
  const fields = [...document.querySelectorAll('input:not([type=hidden]), textarea, select')];
  const marked = fields.filter((each) => each.matches('[aria-invalid=true], .field:has(.field-error) *'));
  const notes = document.querySelectorAll('.notice.danger, .toast.danger, .field-error');
  return {
    marked: marked.map((each) => each.name),
    focused: fields.includes(document.activeElement) ? document.activeElement.name : '',
    values: fields.map((each) => [each.name, each.value]),
    refused: [...notes].map((each) => each.textContent.trim()).join(' '),
  };
}"""


@dataclass(frozen=True)
class FoundForm:
    """A form of a page, by its place among the page's forms."""

    index: int
    action: str
    hidden: str
    names: tuple[str, ...]

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        """Return what tells forms apart, whatever they are about."""
        return re.sub(r"[a-z]{2,3}_[0-9a-z]{26}|\d+", "id", self.action), self.hidden, self.names


def find_forms(page: Page) -> list[FoundForm]:
    """Return the forms of the open page in which one types."""
    return [
        FoundForm(index, each["action"], each["hidden"], tuple(each["names"]))
        for index, each in enumerate(page.evaluate(FIND))
        if each["names"]
    ]


def send_wrong_values(page: Page, form: FoundForm) -> tuple[dict[str, str], dict[str, Any]]:
    """Send a form with wrong values; return those that should be kept, and the state of the page that answers."""
    with page.expect_navigation():
        sent = page.evaluate(SEND, [form.index, WRONG])
    page.wait_for_load_state("load")
    page.wait_for_timeout(50)  # a drawer takes the focus first
    return sent, page.evaluate(STATE)
