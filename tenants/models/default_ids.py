"""Default ids of each kind of row, by names that migrations can import."""

from functools import partial

from ports import ids

ID_LENGTH = 40

user_id = partial(ids.new, "usr")
tenant_id = partial(ids.new, "ten")
project_id = partial(ids.new, "prj")
member_id = partial(ids.new, "mem")
invitation_id = partial(ids.new, "ivt")
service_account_id = partial(ids.new, "sva")
token_id = partial(ids.new, "tok")
operator_token_id = partial(ids.new, "otk")
ssh_key_id = partial(ids.new, "ssh")
quota_id = partial(ids.new, "qta")
audit_id = partial(ids.new, "aud")
