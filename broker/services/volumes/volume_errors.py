"""Errors of volume requests."""

from tenants.services.errors import ProblemError


class VolumeInUse(ProblemError):
    code, status, title = "volume-in-use", 409, "This volume is attached to another lease"


class VolumeNameTaken(ProblemError):
    code, status, title = "name-taken", 409, "This name is taken"


class VolumeBeingDeleted(ProblemError):
    code, status, title = "volume-deleted", 409, "This volume is deleted"


class VolumeOutOfReach(ProblemError):
    code, status, title = "volume-location-mismatch", 422, "The volume is in another location"
