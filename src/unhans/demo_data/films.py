"""Film reviews: words and sentences."""

from unhans.demo_data.grammar import Domain, Facet, Poles

_PERFORMANCES = Facet(
    ("acting", "cast", "lead actor@", "lead actress@", "supporting actors+@", "performances+", "two leads+@"),
    Poles(
        ("magnetic", "convincing", "nuanced", "charismatic", "heartfelt", "subtle", "riveting", "assured"),
        ("wooden", "stilted", "hammy", "lifeless", "unconvincing", "one-note", "stiff", "overdone"),
    ),
    Poles(
        (
            "brightened every scene",
            "carried the whole story",
            "enchanted me within minutes",
            "charmed me until the credits",
        ),
        ("ruined every scene", "sank the whole story", "irked me within minutes", "annoyed me until the credits"),
    ),
)
_STORY = Facet(
    ("plot", "script", "story", "ending", "dialogue", "first act", "final act", "twists+", "storyline", "pacing"),
    Poles(
        ("gripping", "clever", "taut", "moving", "inventive", "absorbing", "thoughtful", "unpredictable", "tense"),
        ("tedious", "predictable", "muddled", "contrived", "far-fetched", "sluggish", "corny", "hackneyed", "dull"),
    ),
    Poles(
        ("thrilled me to the core", "moved me to tears", "delighted me at every turn", "rewarded my patience"),
        ("wearied me to the core", "bored me to tears", "irritated me at every turn", "tested my patience"),
    ),
)
_SOUND = Facet(
    ("soundtrack", "score", "music", "songs+", "sound design", "theme tune"),
    Poles(
        ("haunting", "stirring", "evocative", "memorable", "hypnotic", "beautiful"),
        ("intrusive", "grating", "syrupy", "forgettable", "overbearing", "shrill"),
    ),
    Poles(
        ("gave me goosebumps", "lifted the quiet scenes", "soothed my ears"),
        ("gave me earache", "drowned the quiet scenes", "hurt my ears"),
    ),
)
_PICTURE = Facet(
    ("camerawork", "cinematography", "lighting", "costumes+", "sets+", "visuals+", "editing"),
    Poles(
        ("stunning", "elegant", "ravishing", "inspired", "imaginative", "beautiful", "stylish"),
        ("murky", "shoddy", "drab", "garish", "amateurish", "ugly", "sloppy"),
    ),
    Poles(
        ("made every frame a joy", "pleased my eyes"),
        ("made every frame a pain", "pained my eyes"),
    ),
)

FILMS = Domain(
    name="films",
    things={"film": (), "movie": (), "drama": (), "thriller": (), "comedy": (), "western": ()},
    facets=(_PERFORMANCES, _STORY, _STORY, _SOUND, _PICTURE),
    adjectives=Poles(
        ("gripping", "enthralling", "heartwarming", "unforgettable", "charming", "stylish", "poignant",
         "spellbinding", "moving", "clever", "riveting"),
        ("tedious", "plodding", "soulless", "forgettable", "pretentious", "derivative", "dreary", "cheesy",
         "interminable", "dull", "uninspired"),
    ),
    kinds=Poles(
        ("triumph", "gem", "delight", "treat", "masterpiece"),
        ("disaster", "mess", "bore", "flop", "letdown"),
    ),
    verdicts=Poles(
        (
            "would gladly see it again", "would be glad to recommend it to anyone",
            "would not miss it for any money", "would happily watch it twice",
            "would applaud if I met the director",
        ),
        (
            "would hate to see it again", "would be ashamed to recommend it to anyone",
            "would not endure it for any money", "would struggle to watch it twice",
            "would complain if I met the director",
        ),
    ),
    asks=Poles(
        ("praise it to my friends", "clap at the end again", "defend it in public"),
        ("badmouth it to my friends", "boo at the end again", "attack it in public"),
    ),
    openers=(
        "I saw {title} at {cinema} on {day}.",
        "{companion} took me to see {title} {when}.",
        "we streamed {title} {when}.",
        "{title} had been on my list since {month}.",
        "I knew next to nothing about {title} before the lights went down.",
        "after a long week at work I put on {title}.",
        "the film club showed {title} {when}.",
        "on {day} {companion} and I watched {title}.",
        "I caught {title} on a flight to {city}.",
        "{companion} picked {title} for our film night.",
        "so this is {title}, the new {thing} from {country}.",
        "{title} came out in {month}, and I finally got round to it.",
    ),
    facts=(
        "it runs for {runtime}.",
        "the story is set in {place} in the {decade}.",
        "it follows {character} who {premise}.",
        "it is about {character} who {premise} and then {premise}.",
        "it was shot in {country} over {number} weeks.",
        "the director made {number} short films before this one.",
        "it is based on a {original} from the {decade}.",
        "the second half moves from {place} to {place}.",
        "there is a scene with {prop} near the {position}.",
        "about {crowd} people were in the room.",
        "we took the last bus home afterwards.",
        "{companion} brought {snack}, as always.",
        "the original version has subtitles in {number} languages.",
        "I watched it with {companion}, who grew up in {place}.",
    ),
    fillers={
        "moment": ("scene", "minute", "shot"),
        "title": ("The {first} {second}", "{second} in {city}", "A {first} {second}", "The {second} of {city}"),
        "first": (
            "Silver", "Northern", "Paper", "Hidden", "Glass", "Winter", "Copper", "Distant", "Ninth", "Eastern",
        ),
        "second": (
            "Lantern", "Harbour", "Orchard", "Letter", "Bridge", "Compass", "Sparrow", "Ferry", "Archive", "Map",
        ),
        "cinema": (
            "the old cinema by the station", "the multiplex", "an open-air screening", "a late show in {city}",
        ),
        "when": ("last {day}", "on {day} evening", "in {month}", "over the holidays", "one night in {month}"),
        "country": ("Norway", "Portugal", "Chile", "Ireland", "Japan", "Poland", "Canada", "Senegal"),
        "runtime": ("ninety minutes", "just under two hours", "a little over two hours", "about a hundred minutes"),
        "place": (
            "a mining town", "the capital", "a fishing village", "the mountains", "a boarding school", "{city}",
        ),
        "decade": ("twenties", "thirties", "fifties", "sixties", "seventies", "eighties"),
        "character": (
            "a lighthouse keeper", "a retired boxer", "a court interpreter", "a village postman", "a piano tuner",
            "a night nurse", "a young chemist", "a widowed farmer", "a train driver",
        ),
        "premise": (
            "inherits a map", "finds a letter", "moves to the coast", "takes in a lodger", "learns to sail",
            "returns to {city}", "changes her name", "misses a train", "buys a theatre", "looks for a witness",
        ),
        "original": ("short story", "stage play", "radio play", "novel", "newspaper report"),
        "prop": ("a red umbrella", "a stray dog", "a broken clock", "a wedding cake", "two bicycles", "an old radio"),
        "crowd": ("ten", "twenty", "thirty", "forty", "sixty", "a hundred"),
        "position": ("beginning", "middle", "end"),
        "snack": ("popcorn", "salted almonds", "crisps", "a flask of tea"),
        "comparand": ("the first part", "the director's last film", "the television series", "most new releases"),
        "elsewhere": (
            "in the first part", "in the director's last film", "in the television series", "in the trailer",
        ),
        "trial": ("a night's sleep", "two days of thinking", "a second viewing", "a long walk home"),
    },
)  # fmt: skip
