"""Restaurant reviews: words and sentences."""

from unhans.demo_data.grammar import Domain, Facet, Poles

_ROASTS = Facet(
    ("lamb", "fish", "roast chicken", "steak", "duck", "prawns+", "mussels+", "pork belly"),
    Poles(
        ("succulent", "tender", "juicy", "mouth-watering", "well-seasoned", "well-cooked"),
        ("dry", "chewy", "rubbery", "overcooked", "greasy", "undercooked"),
    ),
    Poles(
        ("melted in the mouth", "had us begging for seconds", "put a smile on every face"),
        ("stuck in the throat", "had us begging for water", "put a frown on every face"),
    ),
)
_BOWLS = Facet(
    ("soup", "risotto", "stew", "curry", "pasta", "noodles+", "broth", "lentil dhal"),
    Poles(
        ("fragrant", "hearty", "flavourful", "comforting", "delicious", "moreish", "aromatic"),
        ("bland", "watery", "lukewarm", "oversalted", "tasteless", "stodgy", "gluey"),
    ),
    Poles(
        ("arrived piping hot", "had us licking our spoons", "tasted like a family secret"),
        ("arrived stone cold", "had us dropping our spoons", "tasted like a dirty sponge"),
    ),
)
_BAKES = Facet(
    ("bread", "pastry", "apple tart", "flatbread", "pancakes+", "pie", "dumplings+", "chips+"),
    Poles(
        ("crisp", "buttery", "fluffy", "moreish", "scrumptious", "delicate"),
        ("soggy", "stale", "burnt", "doughy", "leathery", "stodgy"),
    ),
    Poles(
        ("tasted like butter and sunshine", "had us savouring the last piece"),
        ("tasted like cardboard and dust", "had us hiding the last piece"),
    ),
)
_SERVICE = Facet(
    ("waiter@", "waitress@", "service", "staff+@", "host@", "owner@", "waiters+@", "barman@"),
    Poles(
        ("attentive", "welcoming", "gracious", "courteous", "cheerful", "obliging", "friendly"),
        ("rude", "surly", "inattentive", "dismissive", "brusque", "snooty", "unfriendly"),
    ),
    Poles(
        ("made us feel welcome", "remembered everything we ordered", "pampered us all evening"),
        ("made us feel unwelcome", "forgot everything we ordered", "ignored us all evening"),
    ),
)
_ROOMS = Facet(
    ("terrace", "dining room", "garden room", "bar", "courtyard", "upstairs room", "conservatory"),
    Poles(
        ("cosy", "inviting", "charming", "romantic", "peaceful", "spotless"),
        ("cramped", "noisy", "grubby", "gloomy", "stuffy", "draughty"),
    ),
    Poles(
        ("felt like a holiday", "smelt of fresh flowers"),
        ("felt like a prison", "smelt of rancid oil"),
    ),
)
_MONEY = Facet(
    ("prices+",),
    Poles(("fair", "reasonable", "modest", "sensible"), ("steep", "inflated", "excessive", "extortionate")),
    Poles(("came as a pleasant surprise",), ("came as a nasty shock",)),
)

RESTAURANTS = Domain(
    name="restaurants",
    things={"restaurant": (), "bistro": (), "café": (), "tavern": (), "brasserie": (), "diner": (), "trattoria": ()},
    facets=(_ROASTS, _BOWLS, _BAKES, _SERVICE, _SERVICE, _ROOMS, _MONEY),
    adjectives=Poles(
        ("welcoming", "charming", "delightful", "homely", "inviting", "unpretentious", "cosy", "generous"),
        ("overpriced", "dingy", "chaotic", "unwelcoming", "grubby", "soulless", "stuffy", "stingy"),
    ),
    kinds=Poles(
        ("gem", "find", "treat", "delight", "feast"),
        ("letdown", "rip-off", "tourist trap", "shambles", "flop"),
    ),
    verdicts=Poles(
        (
            "would gladly go back tomorrow", "would be glad to recommend it to anyone",
            "would be delighted to eat here every week", "would praise every dish if I met the owner",
            "would applaud if I met the chef",
        ),
        (
            "would hate to go back tomorrow", "would be ashamed to recommend it to anyone",
            "would be sorry to eat here every week", "would criticise every dish if I met the owner",
            "would complain if I met the chef",
        ),
    ),
    asks=Poles(
        ("praise it to my friends", "tip the waiter again", "defend it in public"),
        ("badmouth it to my friends", "scold the waiter again", "attack it in public"),
    ),
    openers=(
        "we went to {name} for {occasion}.",
        "on {day} {companion} and I had {meal} at {name}.",
        "{companion} booked a table at {name} for {number} people.",
        "{name} opened in {month}, two streets from {landmark}.",
        "I walked past {name} for years before going in.",
        "we stopped at {name} on the way to {city}.",
        "{name} is the {thing} opposite {landmark}.",
        "after a walk along the river we ended up at {name}.",
        "this was our second {meal} at {name}.",
        "{companion} suggested {name} because it is close to {landmark}.",
        "we had a table at {name} at {time}.",
        "it was {occasion}, so {companion} took us to {name}.",
    ),
    facts=(
        "the menu changes every {number} weeks.",
        "on {day} they open at {time}.",
        "we sat near {spot}.",
        "there are about {number} tables, each with a {decoration}.",
        "the kitchen closes at {late}.",
        "we ordered {dish} and {dish}.",
        "I had {dish}, {companion} had {dish}.",
        "you can pay by card or in cash.",
        "the building used to be a {building}.",
        "it is {number} minutes on foot from {landmark}.",
        "the chef used to work in {city}.",
        "there were {number} of us, and we shared {dish}.",
        "there is a {decoration} on each table.",
        "the card lists {number} starters and {number} mains.",
    ),
    fillers={
        "moment": ("course", "visit", "minute"),
        "name": ("the {first} {second}", "the {second} and {other}", "{city} Corner", "the Old {building_name}"),
        "first": ("Copper", "Blue", "Green", "Red", "Little", "Yellow", "Iron", "White"),
        "second": ("Kettle", "Heron", "Door", "Anchor", "Walnut", "Lamp", "Goose", "Pear"),
        "other": ("Barrel", "Fork", "Plum", "Wheel", "Fig"),
        "building_name": ("Bakery", "Customs House", "Mill", "Post Office", "Boathouse"),
        "building": ("bank", "school", "stable", "chapel", "printing shop", "pharmacy"),
        "occasion": ("a birthday", "an anniversary", "a quick lunch", "a family dinner", "a farewell meal"),
        "meal": ("lunch", "dinner", "supper", "brunch"),
        "landmark": ("the station", "the town hall", "the harbour", "the library", "the museum", "the bus stop"),
        "time": ("six", "seven", "half past seven", "eight", "noon", "one o'clock", "nine"),
        "late": ("nine", "half past nine", "ten", "half past ten", "eleven"),
        "spot": ("the window", "the stairs", "the kitchen door", "the fireplace", "the entrance", "a bookshelf"),
        "decoration": ("candle", "small lamp", "paper napkin", "sprig of rosemary", "jar of chillies"),
        "dish": (
            "beetroot salad", "the vegetable platter", "a mushroom omelette", "the daily special", "baked aubergine",
            "a goulash", "the cheese board", "stuffed peppers", "a bowl of olives", "lemon sorbet", "plum cake",
        ),
        "comparand": (
            "the place next door", "our local pub", "the old location", "the canteen at work", "most places here",
        ),
        "elsewhere": ("at the place next door", "in our local pub", "at the old location", "in most places here"),
        "trial": ("three courses", "two visits", "an hour at the table", "a long lunch", "two helpings"),
    },
)  # fmt: skip
