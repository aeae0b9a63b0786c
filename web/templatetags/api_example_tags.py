"""Template tags that write an API request as a curl command."""

from django import template

from web.portal import api_examples

register = template.Library()


@register.simple_tag
def curl_get(*path: object) -> str:
    """Return a GET; the path's parts are joined."""
    return api_examples.curl_get("".join(map(str, path)))


@register.simple_tag
def curl_post(*path: object, **body: object) -> str:
    """Return a POST with this body; the path's parts are joined."""
    return api_examples.curl_post("".join(map(str, path)), body)
