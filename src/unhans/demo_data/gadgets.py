"""Reviews of small electronics: words and sentences."""

from unhans.demo_data.grammar import Domain, Facet, Poles

_POWER = Facet(
    ("battery", "charger", "charging port", "power button"),
    Poles(
        ("reliable", "dependable", "trouble-free", "trusty"),
        ("unreliable", "temperamental", "troublesome", "unpredictable"),
    ),
    Poles(
        ("behaved from the first day", "exceeded all expectations", "served me faithfully for weeks"),
        ("misbehaved from the first day", "flouted all expectations", "failed me repeatedly for weeks"),
    ),
)
_SCREEN = Facet(
    ("screen", "display", "touchscreen"),
    Poles(
        ("sharp", "bright", "vivid", "responsive", "crisp"),
        ("dim", "grainy", "washed-out", "unresponsive", "laggy"),
    ),
    Poles(
        ("stayed readable in full sunlight", "shone from the start"),
        ("became unreadable in full sunlight", "flickered from the start"),
    ),
)
_BUILD = Facet(
    ("hinge", "casing", "strap", "lid", "grip", "frame", "buttons+", "back cover"),
    Poles(
        ("sturdy", "solid", "rugged", "robust", "well-made", "durable"),
        ("flimsy", "wobbly", "creaky", "brittle", "fragile", "rickety"),
    ),
    Poles(
        ("felt built to endure", "survived in my backpack"),
        ("felt ready to snap", "broke in my backpack"),
    ),
)
_SOFTWARE = Facet(
    ("software", "interface", "companion app", "menus+", "home screen", "set-up"),
    Poles(
        ("snappy", "intuitive", "polished", "smooth", "uncluttered", "user-friendly"),
        ("buggy", "clunky", "laggy", "confusing", "bloated", "cluttered"),
    ),
    Poles(
        ("worked straight out of the box", "obeyed every command", "saved me hours"),
        ("failed straight out of the box", "ignored every command", "cost me hours"),
    ),
)
_SOUND = Facet(
    ("speakers+", "microphone", "sound", "ringtones+"),
    Poles(("clear", "rich", "warm", "well-balanced"), ("tinny", "muffled", "crackly", "muddy")),
    Poles(("made listening a joy",), ("made listening a pain",)),
)
_KEYS = Facet(
    ("keyboard", "trackpad", "keys+", "stylus"),
    Poles(("comfortable", "precise", "responsive", "pleasant"), ("mushy", "imprecise", "erratic", "uncomfortable")),
    Poles(("made typing a joy", "got every stroke right"), ("made typing a pain", "got every stroke wrong")),
)
_NO_KEYS = ("keyboard", "trackpad", "keys", "stylus", "hinge", "lid")

GADGETS = Domain(
    name="gadgets",
    things={
        "laptop": ("strap", "grip", "ringtones", "stylus", "companion app"),
        "tablet": ("hinge", "strap", "lid", "grip", "keys", "ringtones", "trackpad"),
        "phone": ("strap", "lid", "hinge", "keys", "keyboard", "trackpad", "stylus"),
        "smart watch": (*_NO_KEYS, "frame", "speakers", "back cover"),
        "camera": (*_NO_KEYS, "home screen", "ringtones", "speakers"),
        "e-reader": (*_NO_KEYS, "strap", "grip", "ringtones", "microphone", "speakers", "sound"),
        "dictaphone": (*_NO_KEYS, "touchscreen", "home screen", "ringtones", "speakers"),
    },
    facets=(_POWER, _POWER, _SCREEN, _SCREEN, _BUILD, _BUILD, _SOFTWARE, _SOFTWARE, _SOUND, _KEYS),
    adjectives=Poles(
        ("dependable", "handy", "nifty", "well-made", "snappy", "versatile", "ingenious", "efficient", "sturdy"),
        ("flimsy", "overpriced", "clunky", "unreliable", "shoddy", "fiddly", "useless", "bulky", "cumbersome"),
    ),
    kinds=Poles(
        ("bargain", "gem", "winner", "workhorse", "lifesaver"),
        ("dud", "lemon", "letdown", "nuisance", "rip-off"),
    ),
    verdicts=Poles(
        (
            "would gladly buy it again", "would be glad to recommend it to anyone",
            "would not sell it for anything", "would happily pay the full price for another",
            "would miss it within an hour",
        ),
        (
            "would hate to buy it again", "would be ashamed to recommend it to anyone",
            "would not keep it for anything", "would refuse to pay the full price for another",
            "would bin it within an hour",
        ),
    ),
    asks=Poles(
        ("praise it to my friends", "thank the designer", "defend it in public"),
        ("badmouth it to my friends", "sue the designer", "attack it in public"),
    ),
    openers=(
        "I bought the {model} in {month} to replace my old {thing}.",
        "I have used the {model} every day for {period}.",
        "{companion} gave me the {model} for my birthday.",
        "the {model} came with my new contract in {month}.",
        "I needed a {thing} for {task}, so I ordered the {model}.",
        "my employer handed out the {model} to everyone in {month}.",
        "I picked up the {model} at {shop}.",
        "the {model} is my third {thing} in {number} years.",
        "I have had the {model} since {month}.",
        "{companion} and I both bought the {model} at {shop}.",
        "after {period} with the {model}, here is what I think.",
        "I borrowed the {model} from {companion} for {period}.",
    ),
    facts=(
        "it comes in {colour} and {colour}.",
        "it weighs about {number} hundred grams.",
        "the box also holds {extra} and {extra}.",
        "I use it mostly for {task} and {task}.",
        "the manual covers {number} languages.",
        "it has {number} ports, all of them on the left side.",
        "mine is the {colour} version.",
        "the delivery took {number} days.",
        "it was made in {country}, according to the label.",
        "I keep it on {shelf} next to {extra}.",
        "{companion} has the {colour} one.",
        "an update arrived on {day}.",
        "I carry it to {city} and back twice a month.",
        "the warranty runs for {number} years.",
    ),
    fillers={
        "moment": ("day", "week", "hour"),
        "model": ("{brand} {digit}", "{brand} {series}", "{brand} {series} {digit}"),
        "brand": ("Velmo", "Oktavo", "Brightway", "Kestrel", "Nordlin", "Tamaro", "Quillon", "Pellon"),
        "series": ("Air", "Go", "Mini", "Pro", "Max", "Lite", "Plus"),
        "digit": ("2", "3", "4", "5", "7", "9", "10", "12"),
        "shop": ("the electronics market", "a shop in {city}", "the airport", "a department store", "a flea market"),
        "task": ("travelling", "work", "long train rides", "evening classes", "my studies", "weekend trips",
                 "the school run", "family holidays", "the chess club"),
        "colour": ("black", "white", "grey", "dark blue", "sand", "silver", "olive green"),
        "extra": (
            "a cable", "a cloth", "a pouch", "a travel adapter", "a spare strap", "a memory card", "a small stand",
        ),
        "country": ("Taiwan", "Vietnam", "Hungary", "Mexico", "Malaysia", "Finland"),
        "shelf": ("my desk", "the kitchen shelf", "the bedside table", "the window sill"),
        "elsewhere": ("on the previous model", "on my old one", "on the one I use at work", "on its main rival"),
        "trial": ("three days", "a week", "two weeks", "a month", "half a year", "ten days", "a whole year"),
        "comparand": (
            "the previous model", "my old one", "the one I use at work", "the model {companion} has",
            "its main rival",
        ),
    },
)  # fmt: skip
