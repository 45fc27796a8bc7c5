"""The held-out work: twenty tools and a hundred questions that training never saw, each with the value that is right.

Their areas (tides, kilns, beehives, ...) are none of training's, no parameter list is shared, and
``tests/test_training.py`` measures how near a question comes to any training sentence. The tools compute
from the tables below, so that a right answer can only come from a right call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qwen_tools.tools import Tool


def _tool(name: str, about: str, required: dict[str, Any], function: Callable[..., Any], **optional: Any) -> Tool:
    """A tool whose parameters are ``required`` and ``optional``: a type's name, a list of choices, or a schema."""

    def schema(kind: Any) -> dict[str, Any]:
        if isinstance(kind, dict):
            return kind
        return {"type": "string", "enum": kind} if isinstance(kind, list) else {"type": kind}

    properties = {key: schema(kind) for key, kind in {**required, **optional}.items()}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, about, parameters, function, read_only=True)


def _in(table: dict[str, Any], key: str) -> Any:
    """A row by its name, whatever its case. Raises LookupError that names what there is."""
    for name, value in table.items():
        if key.strip().casefold() in (part.casefold() for part in name.split("|")):
            return value
    raise LookupError(f"{key!r} is not known; there are {', '.join(name.split('|')[0] for name in table)}")


_TIDES = {
    "Saltmouth|盐口港": {"high": "05:42", "low": "11:58"},
    "Greyhaven|灰港": {"high": "07:13", "low": "13:31"},
    "Anker Bay|安克湾": {"high": "03:26", "low": "09:47"},
}
_MUSEUMS = {
    "Clock Museum|钟表博物馆": "10:30 to 17:45",
    "Shell House|贝壳馆": "09:15 to 16:20",
    "Old Mint|旧造币厂": "11:00 to 19:35",
}
_DOCKS = {
    "Harbour Gate": {"bikes": 7, "free_slots": 13},
    "North Mill": {"bikes": 0, "free_slots": 21},
    "Linden Square": {"bikes": 17, "free_slots": 4},
}
_GARAGES = {"P4": 38, "P7": 112, "Opera": 9, "P12": 251}
_RATINGS = {"Ilse Brandt": 2143, "Marco Vela": 1987, "Yun Zhao|赵云": 2318}
_CONES = {"6": 1222, "04": 1060, "10": 1288}
_HIVES = {"3": 41.7, "8": 36.2, "12": 52.9}
_WASTE = {"Birch Street|桦树街": "Thursday", "Mill Road|磨坊路": "Monday", "Elm Court": "Saturday"}
_BLOOD = {"A+": 46, "A-": 11, "B+": 29, "0-": 5, "AB+": 17}
_LIFTS = {"Tower A": "stuck on floor 9", "Tower B": "running", "Annex": "under repair until 18:00"}
_VACCINES = {2: "hexavalent", 12: "measles", 60: "tetanus booster"}
_POLLEN = {"birch|桦树": 83, "grass|草": 41, "ragweed": 12}
_PRINTERS = {"front desk": 3, "lab 2": 14, "attic": 0}
_CHOIRS = {"Larks|云雀": "Wednesday 19:20", "Low Voices": "Monday 18:05", "Children": "Saturday 10:40"}
_METERS = {"4B": 187, "7C": 263, "1A": 98}
_LOST = {"umbrella|雨伞": "shelf 22", "glove|手套": "shelf 5", "suitcase|手提箱": "room 3"}
_STARS = {"Vega": "21:34", "Sirius": "02:18", "Arcturus": "19:52"}
_CARDS = {"7712": 64, "3305": 0, "9841": 128}
_SOIL = {"bed 1": 23, "bed 4": 61, "greenhouse": 47}

TOOLS = [
    _tool("tide_table", "High and low water at a harbour today.", {"harbour": "string"}, lambda harbour: _in(_TIDES, harbour)),
    _tool("museum_opening", "Opening hours of a museum.", {"museum": {"type": "string", "description": "Name of the museum"}}, lambda museum: _in(_MUSEUMS, museum)),
    _tool("overdue_fine", "What a reader owes for media returned late.", {"items": "integer", "days_late": "integer"}, lambda items, days_late: {"fine_cents": items * days_late * 35}),
    _tool("bike_dock", "Bicycles and free slots at a dock of the city's bicycle hire.", {"dock": "string"}, lambda dock: _in(_DOCKS, dock)),
    _tool("ferry_fare", "Price of a ferry crossing.", {"passengers": "integer"}, lambda passengers, vehicle="none": {"fare": passengers * 13 + {"none": 0, "car": 44, "bicycle": 6}[vehicle]}, vehicle=["none", "car", "bicycle"]),
    _tool("garage_spots", "Free parking spots in a garage.", {"garage": {"type": "string", "description": "Sign of the garage, such as P1"}}, lambda garage: {"free": _in(_GARAGES, garage)}),
    _tool("elo_rating", "Chess rating of a club member.", {"member": "string"}, lambda member: {"rating": _in(_RATINGS, member)}),
    _tool("kiln_target", "Temperature to which a kiln must go for a pyrometric cone.", {"cone": {"type": "string", "description": "Number of the cone"}}, lambda cone: {"celsius": _in(_CONES, cone)}),
    _tool("hive_scale", "Weight of a beehive.", {"hive": {"type": "string", "description": "Number of the hive"}}, lambda hive: {"kilograms": _in(_HIVES, hive)}),
    _tool("waste_collection", "Day on which waste is collected in a street.", {"street": "string", "material": ["paper", "glass", "organic"]}, lambda street, material: {"collected_on": _in(_WASTE, street)}),
    _tool("blood_stock", "Units of blood in the hospital's store.", {"group": {"type": "string", "description": "Blood group, such as A+"}}, lambda group: {"units": _in(_BLOOD, group)}),
    _tool("lift_state", "State of a building's lift.", {"building": "string"}, lambda building: {"state": _in(_LIFTS, building)}),
    _tool("vaccine_due", "Vaccine that is due at an age.", {"age_months": "integer"}, lambda age_months: {"vaccine": _VACCINES.get(age_months, "none")}),
    _tool("paint_litres", "Paint needed for a wall.", {"wall_m2": "number", "coats": "integer"}, lambda wall_m2, coats: {"litres": round(wall_m2 * coats / 8, 2)}),
    _tool("pollen_count", "Pollen in the air by plant.", {"plant": "string"}, lambda plant: {"grains_per_m3": _in(_POLLEN, plant)}),
    _tool("printer_queue", "Jobs that wait at a printer.", {"printer": "string"}, lambda printer: {"waiting": _in(_PRINTERS, printer)}),
    _tool("choir_rehearsal", "When a choir rehearses.", {"choir": "string"}, lambda choir: {"rehearsal": _in(_CHOIRS, choir)}),
    _tool("power_meter", "Electricity that a flat used in a month.", {"flat": "string", "month": {"type": "string", "description": "YYYY-MM"}}, lambda flat, month: {"kwh": _in(_METERS, flat) + int(month[-2:])}),
    _tool("lost_property", "Where a found object is kept.", {"object": "string"}, lambda object: {"kept_in": _in(_LOST, object)}),  # noqa: A006 - the parameter's name
    _tool("star_rise", "Time at which a star rises.", {"star": "string"}, lambda star: {"rises_at": _in(_STARS, star)}),
]  # fmt: skip

# (language, question, name of the tool, what the answer must contain)
QUESTIONS = [
    ("en", "When does the water stand highest in Saltmouth?", "tide_table", "05:42"),
    ("en", "I want to walk on the mudflats at Greyhaven. When is low tide?", "tide_table", "13:31"),
    ("en", "Captain here: give me both tides for Anker Bay.", "tide_table", "03:26"),
    ("zh", "盐口港几点涨潮？", "tide_table", "05:42"),
    ("zh", "灰港今天的低潮在几点？", "tide_table", "13:31"),
    ("en", "Until when can one visit the Clock Museum?", "museum_opening", "17:45"),
    ("en", "From what hour does the Shell House let visitors in?", "museum_opening", "09:15"),
    ("en", "Opening times of the Old Mint?", "museum_opening", "19:35"),
    ("zh", "钟表博物馆几点关门？", "museum_opening", "17:45"),
    ("fr", "À quelle heure ferme le Old Mint ?", "museum_opening", "19:35"),
    ("en", "I kept 3 library books 12 days too long. What do I owe?", "overdue_fine", "1260"),
    ("en", "Four DVDs went back 5 days late; what's the penalty?", "overdue_fine", "700"),
    ("en", "How high is the fine for 2 items that are 9 days overdue?", "overdue_fine", "630"),
    ("zh", "借了 6 本书，逾期 4 天，要罚多少？", "overdue_fine", "840"),
    ("es", "Devolví 5 libros con 8 días de retraso. ¿Cuánto debo?", "overdue_fine", "1400"),
    ("en", "Any bikes left at the Linden Square dock?", "bike_dock", "17"),
    ("en", "I have to park my hired bicycle at North Mill; are there slots free?", "bike_dock", "21"),
    ("en", "Check the bicycle dock called Harbour Gate.", "bike_dock", "7"),
    ("de", "Wie viele Fahrräder stehen an der Station Linden Square?", "bike_dock", "17"),
    ("es", "¿Cuántas bicicletas quedan en Harbour Gate?", "bike_dock", "7"),
    ("en", "We are 4 people on foot. What's the ferry going to cost us?", "ferry_fare", "52"),
    ("en", "Ferry for 2 passengers with a car, please: the price?", "ferry_fare", "70"),
    ("en", "What do 3 persons with a bicycle pay on the ferry?", "ferry_fare", "45"),
    ("zh", "两个人带一辆汽车坐渡轮多少钱？", "ferry_fare", "70"),
    ("fr", "Combien coûte le ferry pour 5 passagers ?", "ferry_fare", "65"),
    ("en", "Can I still park in garage P7?", "garage_spots", "112"),
    ("en", "How many places are empty in P4?", "garage_spots", "38"),
    ("en", "Is the Opera garage nearly full? Tell me the free spots.", "garage_spots", "9"),
    ("zh", "P12 停车场还有几个车位？", "garage_spots", "251"),
    ("de", "Wie viele Plätze sind im Parkhaus P7 frei?", "garage_spots", "112"),
    ("en", "How strong a chess player is Ilse Brandt?", "elo_rating", "2143"),
    ("en", "Marco Vela's Elo, please.", "elo_rating", "1987"),
    ("en", "I play against Yun Zhao tonight. What's her rating?", "elo_rating", "2318"),
    ("zh", "赵云的国际象棋等级分是多少？", "elo_rating", "2318"),
    ("es", "¿Qué puntuación Elo tiene Marco Vela?", "elo_rating", "1987"),
    ("en", "How hot must my kiln get for cone 6?", "kiln_target", "1222"),
    ("en", "Firing to cone 04: which temperature?", "kiln_target", "1060"),
    ("en", "Potter's question: cone 10 in degrees?", "kiln_target", "1288"),
    ("zh", "烧到 6 号锥需要多少度？", "kiln_target", "1222"),
    ("de", "Auf wie viel Grad muss der Ofen für Kegel 10?", "kiln_target", "1288"),
    ("en", "What does hive 8 weigh?", "hive_scale", "36.2"),
    ("en", "Did hive 12 put on weight? Show the scale.", "hive_scale", "52.9"),
    ("en", "Read the scale under beehive 3.", "hive_scale", "41.7"),
    ("zh", "12 号蜂箱有多重？", "hive_scale", "52.9"),
    ("fr", "Combien pèse la ruche 3 ?", "hive_scale", "41.7"),
    ("en", "On what day do they pick up glass in Birch Street?", "waste_collection", "Thursday"),
    ("en", "When should I put out the paper bin? I live in Mill Road.", "waste_collection", "Monday"),
    ("en", "Organic waste, Elm Court: which day?", "waste_collection", "Saturday"),
    ("zh", "桦树街哪天收废纸？", "waste_collection", "Thursday"),
    ("en", "Which day is glass day in Mill Road?", "waste_collection", "Monday"),
    ("en", "How much AB+ blood is in store?", "blood_stock", "17"),
    ("en", "Are we running out of 0- blood? Say how many units are left.", "blood_stock", "5"),
    ("en", "Units of A- available?", "blood_stock", "11"),
    ("zh", "B+ 血还有几个单位？", "blood_stock", "29"),
    ("es", "¿Cuántas unidades de sangre A+ hay?", "blood_stock", "46"),
    ("en", "Does the lift in Tower B work?", "lift_state", "running"),
    ("en", "Why is nobody coming out of the elevator in Tower A?", "lift_state", "floor 9"),
    ("en", "Until when is the Annex lift out of order?", "lift_state", "18:00"),
    ("de", "Was ist mit dem Aufzug in Tower A?", "lift_state", "9"),
    ("fr", "L'ascenseur de Annex marche-t-il ?", "lift_state", "18:00"),
    ("en", "My baby is 2 months old; which shot comes now?", "vaccine_due", "hexavalent"),
    ("en", "Which vaccine is due at an age of 12 months?", "vaccine_due", "measles"),
    ("en", "A child of 60 months: what should be injected?", "vaccine_due", "tetanus"),
    ("zh", "12 个月大的孩子该打什么疫苗？", "vaccine_due", "measles"),
    ("es", "¿Qué vacuna toca a los 2 meses?", "vaccine_due", "hexavalent"),
    ("en", "I'm painting a wall of 24 square metres with 2 coats. How much paint?", "paint_litres", "6"),
    ("en", "Litres of paint for 36 m2, 3 coats?", "paint_litres", "13.5"),
    ("en", "The fence has 50 square metres and gets one coat (1). How many litres do I buy?", "paint_litres", "6.25"),
    ("zh", "40 平方米的墙刷两遍需要多少漆？", "paint_litres", "10"),
    ("de", "Wie viel Farbe brauche ich für 20 Quadratmeter bei 2 Anstrichen?", "paint_litres", "5"),
    ("en", "My nose itches. How much birch pollen is flying?", "pollen_count", "83"),
    ("en", "Grass pollen today?", "pollen_count", "41"),
    ("en", "Give me the ragweed count.", "pollen_count", "12"),
    ("zh", "今天桦树花粉浓度多少？", "pollen_count", "83"),
    ("en", "Is there much grass pollen about? I need the figure.", "pollen_count", "41"),
    ("en", "How long is the queue of the printer in lab 2?", "printer_queue", "14"),
    ("en", "Are jobs waiting at the front desk printer?", "printer_queue", "3"),
    ("en", "Look whether the attic printer is idle.", "printer_queue", "0"),
    ("de", "Wie viele Aufträge warten am Drucker lab 2?", "printer_queue", "14"),
    ("fr", "Combien de travaux attendent sur l'imprimante front desk ?", "printer_queue", "3"),
    ("en", "When do the Larks sing next?", "choir_rehearsal", "19:20"),
    ("en", "My son is in the choir Children; when must he be there?", "choir_rehearsal", "10:40"),
    ("en", "Rehearsal of the Low Voices, day and hour?", "choir_rehearsal", "18:05"),
    ("zh", "云雀合唱团什么时候排练？", "choir_rehearsal", "19:20"),
    ("en", "At what hour do the Low Voices meet?", "choir_rehearsal", "18:05"),
    ("en", "How much electricity did flat 4B use in 2026-03?", "power_meter", "190"),
    ("en", "Consumption of flat 7C for 2025-11, please.", "power_meter", "274"),
    ("en", "Flat 1A, month 2026-05: what does the meter say?", "power_meter", "103"),
    ("zh", "4B 公寓 2026-08 用了多少电？", "power_meter", "195"),
    ("es", "¿Cuánta luz gastó el piso 7C en 2026-02?", "power_meter", "265"),
    ("en", "Somebody found my umbrella. Where do I fetch it?", "lost_property", "shelf 22"),
    ("en", "I lost a glove on the tram; where is it kept?", "lost_property", "shelf 5"),
    ("en", "Has a suitcase been handed in, and where is it?", "lost_property", "room 3"),
    ("zh", "我丢的雨伞放在哪里？", "lost_property", "shelf 22"),
    ("fr", "Où est gardé le glove que j'ai perdu ?", "lost_property", "shelf 5"),
    ("en", "At what time will Vega come up tonight?", "star_rise", "21:34"),
    ("en", "When can I see Sirius rise?", "star_rise", "02:18"),
    ("en", "Astronomer's question: rising time of Arcturus?", "star_rise", "19:52"),
    ("de", "Wann geht Vega auf?", "star_rise", "21:34"),
    ("fr", "À quelle heure se lève Sirius ?", "star_rise", "02:18"),
]  # fmt: skip


def offered(index: int) -> list[Tool]:
    """The tools that question ``index`` is asked with: its own among two to four others, in an order of its own."""
    own = next(place for place, tool in enumerate(TOOLS) if tool.name == QUESTIONS[index][2])
    rest = [place for place in range(len(TOOLS)) if place != own]
    others = [rest[(index * 7 + 5 * step) % len(rest)] for step in range(2 + index % 3)]
    chosen = sorted([own, *others], key=lambda place: (place * 7 + index) % len(TOOLS))
    return [TOOLS[place] for place in chosen]


# --- Faults -------------------------------------------------------------------------------------------------------


def _needs_name(card: str) -> Any:
    return {"balance": _in(_CARDS, card)}


def _down(**_: Any) -> Any:
    raise ConnectionError("the service does not answer")


def _celsius_only(bed: str, unit: str) -> Any:
    if unit != "percent":
        raise ValueError("unit must be 'percent'")
    return {"moisture": _in(_SOIL, bed)}


# (question, tools, a wrong call that stands in the conversation already or None, what the answer must contain or None
# where only an honest answer is possible)
FAULTS = [
    ("How much is left on gift card 7712?", [_tool("gift_card", "Balance of a gift card.", {"card": "string"}, _needs_name)], ("card_balance", {"card": "7712"}), "64"),
    ("Tell me the balance of card 9841.", [_tool("gift_card", "Balance of a gift card.", {"card": "string"}, _needs_name)], ("get_gift_card", {"card": "9841"}), "128"),
    ("How moist is the soil in bed 4, in percent?", [_tool("soil_probe", "Soil moisture of a bed.", {"bed": "string", "unit": "string"}, _celsius_only)], ("soil_probe", {"bed": "bed 4"}), "61"),
    ("Soil moisture of the greenhouse?", [_tool("soil_probe", "Soil moisture of a bed.", {"bed": "string", "unit": "string"}, _celsius_only)], ("soil_probe", {"bed": "greenhouse", "unit": "litres"}), "47"),
    ("When is high tide at Saltmoth?", [TOOLS[0], TOOLS[1]], ("tide_table", {"harbour": "Saltmoth"}), "05:42"),
    ("Which day is paper collected in Mill Rode?", [TOOLS[9], TOOLS[2]], ("waste_collection", {"street": "Mill Rode", "material": "paper"}), "Monday"),
    ("Which day is paper collected in Elm Court?", [TOOLS[9], TOOLS[4]], ("waste_collection", {"street": "Elm Court", "material": "papers"}), "Saturday"),
    ("What does the ferry cost for 2 people with a car?", [TOOLS[4], TOOLS[5]], ("ferry_fare", {"passengers": "two", "vehicle": "car"}), "70"),
    ("How many bikes are at North Mill?", [TOOLS[3], TOOLS[11]], ("bike_station", {"dock": "North Mill"}), "0"),
    ("What is Marco Vela's rating?", [TOOLS[6], TOOLS[7]], ("rating", {"member": "Marco Vela"}), "1987"),
    ("How many units of B+ are there?", [TOOLS[10], TOOLS[12]], ("blood_stock", {"blood": "B+"}), "29"),
    ("When does Sirius rise?", [TOOLS[19], TOOLS[8]], ("star_rise", {}), "02:18"),
    ("How heavy is hive 3?", [TOOLS[8], TOOLS[2]], ("hive_weight", {"hive": "3"}), "41.7"),
    ("How many jobs wait at lab 2?", [TOOLS[15], TOOLS[16]], ("printer", {"printer": "lab 2"}), "14"),
    ("Where is the lost suitcase?", [TOOLS[18], TOOLS[17]], ("find_lost_property", {"object": "suitcase"}), "room 3"),
    ("What is the water level of the canal?", [_tool("water_level", "Water level of a canal.", {}, _down)], None, None),
    ("How fast is the wind on the bridge?", [_tool("bridge_wind", "Wind on the bridge.", {}, _down), TOOLS[3]], None, None),
    ("Which lane of the pool is free?", [_tool("pool_lanes", "Free lanes of the pool.", {}, _down), TOOLS[1]], None, None),
    ("运河的水位是多少？", [_tool("water_level", "Water level of a canal.", {}, _down)], None, None),
    ("Is the sauna hot already?", [_tool("sauna_state", "Temperature of the sauna.", {}, _down), TOOLS[9]], None, None),
]  # fmt: skip

# One conversation of ten questions; what the answer must contain, and whether a tool is needed. ``tools`` are the
# program's own six.
FOLLOW_UPS = [
    ("What is 17 * 23?", "391", True),
    ("And the square root of 1369?", "37", True),
    ("Whose painting is The Starry Night?", "Gogh", False),
    ("Which city is Sweden's capital?", "Stockholm", False),
    ("What time is it?", "{clock}", True),
    ("Thanks! What does RAM stand for?", "andom", False),
    ("How far is Paris from Berlin?", "871", True),
    ("Add 12.5 and 7.25.", "19.75", True),
    ("I also need Python code: a function, please, that doubles its argument.", "def ", False),
    ("What is 1000 - 357?", "643", True),
]

# Asked without tools, of the taught model and of the plain one, and read by eye.
PLAIN = [
    "Hello! Who are you?",
    "Explain in two sentences what a compiler does.",
    "Write a Python function that returns the n-th Fibonacci number.",
    "Translate into German: I would like a glass of water.",
    "用一句话解释什么是机器学习。",
    "Give me a JSON example of a person with a name, an age and two hobbies.",
    "What is the difference between TCP and UDP?",
    "Write a limerick about a cat.",
    "What is 2 + 2?",
    "List three uses of bamboo.",
]
