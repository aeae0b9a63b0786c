"""What a volume may be refused for."""

from tenants.services.refusals import Refused


class VolumeInUse(Refused):
    code, status, title = "volume-in-use", 409, "Another lease has this volume"


class NameTaken(Refused):
    code, status, title = "name-taken", 409, "This name is taken"


class VolumeGoing(Refused):
    code, status, title = "volume-deleted", 409, "This volume is deleted"


class OutOfReach(Refused):
    code, status, title = "volume-out-of-reach", 422, "The volume lies elsewhere"
