"""Names of this machine."""

from __future__ import annotations

import ipaddress


def is_local(host: str) -> bool:
    """Whether a host is this machine by its very name. A number cannot be made to lead here, as a name can."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
