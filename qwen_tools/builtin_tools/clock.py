"""The time, anywhere."""

from __future__ import annotations

import datetime as dt
import re
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from ..tools import Tool
from . import cities


def get_current_time(timezone: str | None = None) -> str:
    """The date and time as one string, for example ``2026-12-01 09:30:00 CET (Tuesday)``; without a
    timezone in the local zone. Raises ValueError for an unknown zone.
    """
    wanted = (timezone or "local").strip()
    now = (
        dt.datetime.now().astimezone()
        if wanted.lower() in ("", "local", "local time")
        else dt.datetime.now(_zone(wanted))
    )
    # The weekday is last: where it begins the string, the embedded model does not copy some of them.
    return now.strftime("%Y-%m-%d %H:%M:%S %Z (%A)")


def _zone(name: str) -> dt.tzinfo:
    """An IANA zone by its name or, since models say so, by an offset (``UTC+8``) or a city, also one that has no
    zone of its own (``Asia/Beijing``).
    """
    # In IANA's own Etc/GMT+8 the sign is turned round; whoever writes GMT+8 means eight hours ahead.
    offset = re.fullmatch(r"(?:UTC|GMT)\s*([+-])\s*(\d{1,2})(?::?([0-5]\d))?", name.replace("−", "-"), re.IGNORECASE)
    if offset and int(offset[2]) <= 14:
        ahead = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return dt.timezone(ahead if offset[1] == "+" else -ahead)
    zones = {zone.lower(): zone for zone in available_timezones()}
    wanted = name.replace(" ", "_").lower()
    if wanted in zones:
        return ZoneInfo(zones[wanted])
    place = wanted.rsplit("/", 1)[-1]
    city = cities.find(place)
    found = [city.timezone] if city else [zone for zone in zones.values() if zone.lower().endswith("/" + place)]
    if found:
        return ZoneInfo(min(found, key=len))
    close = get_close_matches(wanted[:50], zones, 1, 0.8)
    hint = f"did you mean {zones[close[0]]}?" if close else "use an IANA name such as Europe/Paris"
    raise ValueError(f"unknown time zone {name!r}: {hint}")


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
