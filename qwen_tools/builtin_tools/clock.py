"""The time."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from ..tools import Tool


def get_current_time(timezone: str | None = None) -> str:
    """The date and time as one string, for example ``Tuesday, 2026-12-01 09:30:00 CET``; without a
    timezone in the local zone. Raises ValueError for an unknown zone.
    """
    now = datetime.now().astimezone() if not timezone or timezone == "local" else datetime.now(_zone(timezone))
    return now.strftime("%A, %Y-%m-%d %H:%M:%S %Z")


def _zone(name: str) -> ZoneInfo:
    """An IANA zone by its name or, since models say so, by the city at its end."""
    wanted = name.strip().replace(" ", "_").lower()
    zones = available_timezones()
    found = [zone for zone in zones if zone.lower() == wanted]
    found = found or [zone for zone in zones if zone.lower().rsplit("/", 1)[-1] == wanted]
    if not found:
        raise ValueError(f"unknown time zone {name!r}: use an IANA name such as Europe/Paris")
    return ZoneInfo(min(found, key=len))


TOOLS = [
    Tool(
        "get_current_time",
        "The current date and time.",
        {
            "type": "object",
            "properties": {
                "timezone": {"type": "string", "description": "IANA time zone name; left out for local time"}
            },
            "required": [],
        },
        get_current_time,
        read_only=True,
    )
]
