"""Template tags that write an API request as a curl command."""

from django import template

from web.portal import api_examples

register = template.Library()


@register.simple_tag
def curl_get(*path: object) -> str:
    """Return a curl GET command; the path arguments are concatenated."""
    return api_examples.curl_get("".join(map(str, path)))


@register.simple_tag
def curl_post(*path: object, **body: object) -> str:
    """Return a curl POST command with this body; the path arguments are concatenated."""
    return api_examples.curl_post("".join(map(str, path)), body)
