"""All time zones of the machine, and those with clock changes at midnight."""

from zoneinfo import available_timezones

ALL = sorted(available_timezones() - {"localtime"})
RARE = [
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe",
    "America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Pacific/Apia",
    "Pacific/Kiritimati", "America/St_Johns", "Africa/Casablanca", "Antarctica/Troll",
]  # fmt: skip
