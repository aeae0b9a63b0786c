"""Errors of saved secrets; none of them contains a value."""

from tenants.services.errors import ProblemError


class SecretNameTaken(ProblemError):
    code, status, title = "name-taken", 409, "This name is taken"


class SecretInUse(ProblemError):
    code, status, title = "secret-in-use", 409, "A lease uses this secret"


class NoEncryptionKey(ProblemError):
    code, status, title = "no-encryption-key", 409, "This installation cannot store secrets"


class TooManySecrets(ProblemError):
    code, status, title = "too-many-secrets", 409, "The project has too many secrets"
