"""Tools on data that ships with the program: sample weather, and distances computed from coordinates.

The weather is made up, and every answer says so.
"""

from __future__ import annotations

import math
from typing import Any

from ..tools import Tool
from . import cities
from .cities import City

_EARTH_KM = 6371.0  # mean radius
_CONDITIONS = ("sunny", "partly cloudy", "cloudy", "light rain", "windy")


def get_current_weather(location: str, unit: str) -> dict[str, Any]:
    """Sample weather. Raises ValueError for a city that is not in the table."""
    city = _city(location)
    celsius = round(30 - abs(city.latitude) * 0.4)
    return {
        "location": city.name,
        "temperature": celsius if unit == "celsius" else round(celsius * 9 / 5 + 32),
        "unit": unit,
        "condition": _CONDITIONS[len(city.name) % len(_CONDITIONS)],
        "note": "sample data, not a measurement",
    }


def get_distance_between_cities(city1: str, city2: str) -> dict[str, Any]:
    """The distance along the great circle (haversine formula). Raises ValueError for an unknown city."""
    first, second = _city(city1), _city(city2)
    phi1, phi2 = math.radians(first.latitude), math.radians(second.latitude)
    half_turn = math.radians(second.longitude - first.longitude) / 2
    chord = math.sin((phi2 - phi1) / 2) ** 2 + math.cos(phi1) * math.cos(phi2) * math.sin(half_turn) ** 2
    distance = 2 * _EARTH_KM * math.asin(math.sqrt(min(1.0, chord)))  # of antipodes it may round to more than 1
    return {
        "city1": first.name,
        "city2": second.name,
        "distance_km": round(distance),
        "note": "as the crow flies, from sample coordinates",
    }


def _city(name: str) -> City:
    city = cities.find(name)
    if city is None:
        near = cities.closest(name)
        hint = f"did you mean {near.name}?" if near else "try a large city"
        raise ValueError(f"{name!r} is not in the sample data; {hint}")
    return city


_TEXT = {"type": "string"}

TOOLS = [
    Tool(
        "get_current_weather",
        "The current weather in a city.",
        {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "name of the city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["location", "unit"],
        },
        get_current_weather,
        read_only=True,
    ),
    Tool(
        "get_distance_between_cities",
        "How far two cities are apart, in kilometres.",
        {"type": "object", "properties": {"city1": _TEXT, "city2": _TEXT}, "required": ["city1", "city2"]},
        get_distance_between_cities,
        read_only=True,
    ),
]
