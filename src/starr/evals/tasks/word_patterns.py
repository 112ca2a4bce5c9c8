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
    "gain": (
        "{S} buys {k} more {T}.",
        "{S} finds {k} more.",
        "{S} gets {k} more from a friend.",
        "{S} adds {k} {T}.",
        "{S} buys {k} more.",
    ),
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
    "have": (
        "how many {T} does {N} have?",
        "how many {T} are there for {N}?",
        "what number of {T} does {N} have?",
        "how many {T} does {N} have now?",
    ),
    "total": ("how many {T} do {A} and {B} have together?", "how many {T} do they have in total?"),
    "diff": ("how many more {T} does {M} have than {L}?", "by how many {T} is {M} ahead of {L}?"),
    "sell": ("how many dollars does {N} get?", "how much money does {N} get?"),
    "share": ("how many {T} does each friend get?", "how many {T} are there for each friend?"),
}

# All wordings of a kind have the same number of words, so that a problem fixes how long its answer is: otherwise
# decoding by confidence settles on a short answer first and then has no room for all steps.
WORDINGS = {
    "bags": ("So {S} has {e} {T}.", "Now {S} has {e} {T}.", "So there are {e} {T}."),
    "gain": ("Then {S} has {e} {T}.", "Now there are {e} {T}.", "Adding {k} makes {e} {T}.", "So that makes {e} {T}."),
    "lose": (
        "Then {S} has {e} {T}.",
        "Now there are {e} {T}.",
        "Taking {k} leaves {e} {T}.",
        "So that leaves {e} {T}.",
    ),
    "times": ("Then {S} has {e} {T}.", "Now there are {e} {T}.", "So that makes {e} {T}.", "So {S} gets {e} {T}."),
    "split": ("Then {S} keeps {e} {T}.", "One part is {e} {T}.", "Each part has {e} {T}.", "So that leaves {e} {T}."),
    "more": ("Then {S} has {e} {T}.", "So {S} gets {e} {T}.", "Now {S} has {e} {T}."),
    "fewer": ("Then {S} has {e} {T}.", "So {S} gets {e} {T}.", "Now {S} has {e} {T}."),
    "multiple": ("Then {S} has {e} {T}.", "So {S} gets {e} {T}.", "Now {S} has {e} {T}."),
    "sell": ("Then {S} gets {e} dollars.", "So that makes {e} dollars.", "The money is {e} dollars."),
    "share": ("Each friend gets {e} {T}.", "So each gets {e} {T}.", "Then each gets {e} {T}."),
    "total": ("Together they have {e} {T}.", "The total is {e} {T}.", "So they have {e} {T}."),
    "diff": ("So {M} has {e} more {T}.", "Then {M} has {e} more {T}.", "Now {M} has {e} more {T}."),
}
TOLD = ("So {S} has {a} {T}.", "Now {S} has {a} {T}.")  # the answer to a problem without steps, which no test has
CONNECTIVES = ("So", "Now", "Then")


def is_held_out_pair(opener: int, phrase: int) -> bool:
    """Pairs of indices kept for the test split; every opener and every phrase still occurs in training."""
    return (opener + 2 * phrase) % 4 == 3


def first_wordings(kind: str) -> tuple[str, ...]:
    """Wordings for the start of an answer, where no space precedes and other words have fewer tokens than these."""
    return tuple(wording for wording in WORDINGS[kind] if wording.split()[0] in CONNECTIVES)
