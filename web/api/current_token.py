"""API of the token of the request itself."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.models import ApiToken
from tenants.services.errors import Fix, ObjectNotFound
from web.api.base_views import TenantViewSet
from web.api.capped_tokens import CappedTokenOut, token_rows
from web.http.authentication import AnyVisitor


class CurrentTokenViewSet(TenantViewSet):
    """Token of this request."""

    serializer_class = CappedTokenOut
    pagination_class = None
    filter_backends = []
    permission_classes = [AnyVisitor]

    @extend_schema(operation_id="tokens_current", responses=CappedTokenOut)
    def retrieve(self, request: Request) -> Response:
        """Return the token you send: its scopes, project, expiry, parent and spend cap.

        It needs no scope. Signed in by session there is none.
        """
        token = ApiToken.objects.filter(pk=self.request.visitor.token_id).first()
        if token is None:
            raise ObjectNotFound(
                "You are signed in by session, not by a token.",
                fix=Fix("See who you are.", "GET", "/api/v1/users/me"),
            )
        (row,) = token_rows([token], tenant=self.request.tenant, now=self.now)
        return Response(row)
