"""Time zones for tests: all the machine knows, and those whose clocks did something rare at midnight."""

from zoneinfo import available_timezones

ALL = sorted(available_timezones() - {"localtime"})
RARE = [
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe",
    "America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Pacific/Apia",
    "Pacific/Kiritimati", "America/St_Johns", "Africa/Casablanca", "Antarctica/Troll",
]  # fmt: skip
