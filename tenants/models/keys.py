"""Default ids of each kind of row; functions, because migrations must be able to name them."""

from ports import ids

ID_LENGTH = 40


def user_id() -> str:
    return ids.new("usr")


def tenant_id() -> str:
    return ids.new("ten")


def project_id() -> str:
    return ids.new("prj")


def member_id() -> str:
    return ids.new("mem")


def invitation_id() -> str:
    return ids.new("ivt")


def service_account_id() -> str:
    return ids.new("sva")


def token_id() -> str:
    return ids.new("tok")


def quota_id() -> str:
    return ids.new("qta")


def audit_id() -> str:
    return ids.new("aud")
