"""Words and sentence patterns of ``word-problems``.

A prompt sentence is an opener and a phrase. Some (opener, phrase) pairs are never trained on, though all their words
are: they make the test split's sentence patterns (see ``is_held_out_pair``).
"""

from __future__ import annotations

HE = ("Tom", "Ben", "Max", "Leo", "Sam", "Paul", "Omar", "Ivan", "Noah", "Luis")
SHE = ("Ana", "Mia", "Eva", "Zoe", "Lily", "Nora", "Ruth", "Sara", "Ida", "Emma")
THINGS = (
    "apples", "books", "cards", "coins", "pens", "shells", "stones", "toys", "cookies", "flowers",
    "marbles", "stickers", "stamps", "pears", "eggs", "balls",
)  # fmt: skip
HOLDERS = ("boxes", "bags", "baskets", "jars")

OPENERS = ("", "Then ", "Later ", "After that, ", "The next day ")
PHRASES = {
    "gain": ("{S} buys {k} more {T}.", "{S} finds {k} more.", "{S} gets {k} more from a friend.", "{S} adds {k} {T}."),
    "lose": ("{S} gives {k} {T} away.", "{S} loses {k} of them.", "{S} drops {k}.", "{S} gives {k} to a friend."),
    "times": (
        "{S} makes it {k} times as many.",
        "the {T} of {N} become {k} times as many.",
        "{S} gets {k} times as many.",
    ),
    "split": ("{S} splits them into {k} equal parts and keeps one.", "{S} keeps only one of {k} equal parts."),
    "more": ("{B} gets {k} more {T} than {N} has.", "{B} buys {k} more than {N} has."),
    "fewer": ("{B} gets {k} fewer {T} than {N} has.", "{B} buys {k} fewer than {N} has."),
    "multiple": ("{B} gets {k} times as many {T} as {N} has.", "{B} buys {k} times as many as {N} has."),
    "sell": ("{S} sells each of them for {k} dollars.", "{S} sells them all for {k} dollars each."),
    "share": ("{S} shares them equally among {k} friends.", "{S} gives them to {k} friends in equal parts."),
    "distract": ("{D} buys {k} {O}.", "{D} finds {k} {O}.", "{D} gets {k} {O} from a friend."),
}
STARTS = ("{N} has {a} {T}.", "{N} starts with {a} {T}.", "There are {a} {T} in the room of {N}.")
BAGS = ("{N} has {a} {H} with {k} {T} in each.", "There are {k} {T} in each of the {a} {H} of {N}.")

QUESTION_OPENERS = ("", "Now, ", "In the end, ", "Tell me, ")
QUESTIONS = {
    "have": ("how many {T} does {N} have?", "how many {T} are there for {N}?", "what number of {T} does {N} have?"),
    "total": ("how many {T} do {A} and {B} have together?", "how many {T} do they have in total?"),
    "diff": ("how many more {T} does {M} have than {L}?", "by how many {T} is {M} ahead of {L}?"),
    "sell": ("how many dollars does {N} get?", "how much money does {N} get?"),
    "share": ("how many {T} does each friend get?", "how many {T} are there for each friend?"),
}

BEGINNINGS = ("", "", "", "First, ")
CONNECTIVES = ("", "", "", "Then ", "So ", "Now ", "Next, ")
WORDINGS = {
    "bags": (
        "{S} has {e} {T}.",
        "{S} has {e} {T} to start with.",
        "all {H} hold {e} {T}.",
        "there are {e} {T} in the {H}.",
    ),
    "gain": (
        "{S} has {e} {T}.",
        "{S} has {e}.",
        "adding {k} makes {e}.",
        "with {k} more there are {e} {T}.",
        "that makes {e} {T}.",
    ),
    "lose": (
        "{S} has {e} {T} left.",
        "{S} has {e}.",
        "taking away {k} leaves {e}.",
        "without {k} there are {e} {T}.",
        "that leaves {e} {T}.",
    ),
    "times": ("{S} has {e} {T}.", "{k} times as many is {e}.", "that makes {e} {T}.", "there are {e} {T}."),
    "split": ("{S} keeps {e} {T}.", "one part is {e}.", "each part has {e} {T}.", "that leaves {e} {T}."),
    "more": ("{S} has {e} {T}.", "{S} gets {e}.", "{k} more than {N} is {e}.", "that makes {e} {T} for {S}."),
    "fewer": ("{S} has {e} {T}.", "{S} gets {e}.", "{k} fewer than {N} is {e}.", "that leaves {e} {T} for {S}."),
    "multiple": ("{S} has {e} {T}.", "{S} gets {e}.", "{k} times as many is {e}.", "that makes {e} {T} for {S}."),
    "sell": ("{S} gets {e} dollars.", "that makes {e} dollars.", "the money is {e} dollars."),
    "share": ("each friend gets {e} {T}.", "one part is {e}.", "that makes {e} {T} for each friend."),
    "total": (
        "together they have {e} {T}.",
        "the total is {e}.",
        "in total there are {e} {T}.",
        "{A} and {B} have {e} {T}.",
    ),
    "diff": ("{M} has {e} more {T}.", "the difference is {e}.", "{M} is ahead by {e}."),
}


def is_held_out_pair(opener: int, phrase: int) -> bool:
    """Pairs of indices kept for the test split; every opener and every phrase still occurs in training."""
    return (opener + 2 * phrase) % 4 == 3
