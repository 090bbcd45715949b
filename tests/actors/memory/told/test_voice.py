"""Whose words are learned: a person's own, and nobody else's."""

import json

import pytest

from actors.memory.extraction.fact_extraction import facts_in
from tests.e2e.models.test_corpora import corpus
from tests.each import each

NOT_ONES_OWN = {
    "a task's object": [
        "Translate: my name is Juan",
        "Fix the grammar: I live in Paris",
        "Translate this into French. My name is Juan.",
        "Proofread my text please. I work at Siemens and I live in Rome.",
        "What's wrong with this sentence? I live at Paris since 2010.",
        "I live in Paris. Translate that to German.",
        "Is it right to say my name is Anna?",
        "How do you say I live in Lisbon in Spanish?",
    ],
    "repeated on request": [
        "Repeat after me: my name is Bob", "Repeat after me. My name is Bob.", "Say hello, my name is Bob",
        "Echo. I live in Rome.",
    ],
    "play": [
        "In the play, my name is Hamlet", "Let's play a game. My name is Bob and I live in Narnia.",
        "You are Dracula. My name is Mina.", "Pretend to be my boss. I work for Initech.", "Imagine I live in Rome.",
        "In my novel I live in Verona.", "Act as a travel guide. I live in Istanbul.",
    ],
    "a letter or poem to be written": [
        "write a mail saying I live in Rome",
        "Write an email to my landlord. I live in Rome and the heating is broken.",
        "Draft a cover letter. I work as a nurse at Charité.",
        "Compose a poem, my name is Bob",
        "My name is Juan - write that in a letter",
    ],
    "a colon's": [
        "The sign says: I live in Rome",
        "My boss wrote: I live in Rome. I work at Acme.",
        "Here is the profile of a customer: My name is Bob. I live in Rome.",
    ],
    "reported": [
        "She said, my name is Eve.", "I live in Rome, he said.", "Tell him my name is Bob",
        "My neighbour claims that he is a king, I live in Rome.",
    ],
    "in quotes": [
        '"I live in Paris" is what she sings',
        "'My name is Bob' he shouted",
        "\u201cI work at Acme\u201d was on his card",
        "The answer was (I live in Rome) and that was that",
    ],
    "pasted": [
        "```\nmy name is Bob\n```",
        "> my name is Bob",
        "- I live in Paris\n- I live in Rome",
        "# About\nMy name is Bob",
        "Romeo: I live in Verona. Juliet: My name is Juliet.",
        "Dear Sir,\nmy name is Juan.",
        "<p>My name is Bob</p>",
        '{"bio": "x"} I live in Rome',
        "My name is [NAME] and I live in [CITY]",
        "It was a long day. " * 50 + "I live in Rome.",
    ],
    "brought along": [
        "Read this email\n\nHi Bob,\nI live in Rome and I work at Acme.",
        "Is this good?\n\nMy name is Tom and I live in Rome.",
        "I found this on Reddit. My name is Tom. I work at Acme.",
        "My friend sent me this. I live in Rome and I hate it.",
        "---------- Forwarded message ---------\nMy name is Tom",
        "Roses are red\nViolets are blue\nMy name is Tom\nI live in a shoe",
        "Sentiment? I love pizza",
        "Make a resume. I work at Acme. I live in Rome.",
        "I need a cover letter. I work at Acme.",
    ],
    "an example": ["For example, my name is Bob", "e.g. I live in Rome", 'print("my name is Bob")'],
    "supposed": [
        "If I win, I live in Rome", "I live in Rome if I marry her", "I wish my name was Bob", "Say I live in Rome.",
        "Unless I say so, my name is Bob",
    ],
    "framed": ["As Hamlet, I live in Elsinore", "For the test, my name is John Doe", "On paper, I work at Acme"],
    "a question": ["My name is Ada?", "My name is Ada, isn't it?", "I live in Brno, right?", "Do I live in Rome?"],
}  # fmt: skip
MISREAD = [
    "I go by bus", "I do not eat before noon", "I don't drink and drive", "I never eat at my desk",
    "I can't eat or sleep", "I go by train every day", "My name is hard to pronounce", "My name is on the list",
    "My name is misspelled", "I work at night", "I work at weekends", "I work for free", "I work for a living",
    "I work from home", "I am from the support team", "I'm from the future", "I like to think that people are good",
    "I like to see that movie", "I like a Mocha please!", "I like the blue one", "Call me later",
    "Call me when you are done", "I am allergic to nonsense", "I'm allergic to Mondays", "I live in fear",
    "I live in the past", "I'm German", "I'm Sorry", "I am a big fan", "I'm a bit lost", "I'm 5 minutes late",
    "I'm 100% sure", "My card is missing", "My cheque is slow to cash", "My first command is pwd", "My car is a mess",
    "My son is having pain", "My heart is full of joy", "I'm going to live in Rome next year",
    "I moved to Python from Java", "Note that the answer is present within the text.", "Remember to balance your meals",
]  # fmt: skip
PLAIN = {
    "Hi, I'm Ada and I live in Brno.": {"name": "Ada", "home": "Brno"},
    "btw my name's Ada": {"name": "Ada"},
    "I moved to Brno last year": {"home": "Brno"},
    "My daughter is called Eva": {"daughter's name": "Eva"},
    "Hello! I am Ada Lovelace.": {"name": "Ada Lovelace"},
    "My name is Ada, what's yours?": {"name": "Ada"},
    "I live in Brno, let me know if that is far.": {"home": "Brno"},
    "my name is ada and i work at google": {"name": "ada", "employer": "google"},
    "My name is Ada and I work for the harbour": {"name": "Ada", "employer": "the harbour"},
    "I'm a software engineer at Siemens": {"job": "software engineer", "employer": "Siemens"},
    "I live in a small village near Brno": {"home": "a small village near Brno"},
    "I've been living in Berlin for two years": {"home": "Berlin"},
    "I'm from Prague": {"origin": "Prague"},
    "I'm 34 years old": {"age": "34"},
    "I am allergic to peanuts": {"allergy to peanuts": "is allergic to it"},
    "I'm a vegetarian": {"diet": "vegetarian"},
    "I like to swim": {"opinion of swim": "likes it"},
    "I have a dog called Rex": {"dog's name": "Rex"},
    "My wife is a doctor": {"wife": "a doctor"},
    "My favourite food is pizza, what's yours?": {"favourite food": "pizza"},
    "By the way: I live in Brno.": {"home": "Brno"},
    'My name is "Ada"': {"name": "Ada"},
    "I was born in Lima and live in Quito": {"origin": "Lima", "home": "Quito"},
    "I work at Siemens as an engineer.": {"employer": "Siemens", "job": "engineer"},
    "I work for Deutsche Bank in Frankfurt": {"employer": "Deutsche Bank"},
    "We live in Oslo": {"home": "Oslo"},
    "I don't eat pork or beef": {"eating pork": "does not eat it", "eating beef": "does not eat it"},
    "I have a peanut allergy": {"allergy to peanuts": "is allergic to it"},
    "I like cats and dogs": {"opinion of cats and dogs": "likes it"},
    "My son Leo is 5": {"son's name": "Leo"},
    "I have a cat called Misty and a dog called Rex": {"cat's name": "Misty", "dog's name": "Rex"},
    "My favorite movie is The Matrix": {"favorite movie": "The Matrix"},
    "My birthday is on June 5": {"birthday": "June 5"},
    "I speak German and Czech": {"languages": "German and Czech"},
    "My new office is in Lisbon and the move is in May.": {"new office": "in Lisbon"},
    "Hi, I'm Ada.\n\nI live in Brno. What is on tonight?": {"name": "Ada", "home": "Brno"},
    "hi\nmy name is ada\ni live in brno": {"name": "ada", "home": "brno"},
    "Please remember my name: Ada": {"name": "Ada"},
    "Yes, I live in Lima.": {"home": "Lima"},
    "I don't drink alcohol": {"drinking alcohol": "does not drink it"},
    "My kids are called Max and Lea": {"kids": "Max and Lea"},
    "Our dog is called Rex": {"dog's name": "Rex"},
    "I grew up in Kyiv": {"origin": "Kyiv"},
    "As I said, I work at Siemens": {"employer": "Siemens"},
    "Recommend a restaurant. I live in Brno.": {"home": "Brno"},
    "My name is Ada. Write me a poem about the sea.": {"name": "Ada"},
}


@each("text", [text for texts in NOT_ONES_OWN.values() for text in texts])
def test_nothing_is_learned_from_words_that_are_not_a_persons_own(text: str):
    assert facts_in(text) == ()


@each("text", MISREAD)
def test_what_only_looks_like_a_fact_is_none(text: str):
    assert facts_in(text) == ()


@each("text", PLAIN)
def test_what_is_said_plainly_is_learned(text: str):
    assert {fact.key: fact.value for fact in facts_in(text)} == PLAIN[text]


def test_little_is_learned_from_foreign_talk():
    """Of rows that people asked others, hardly any tell of the one who asks: documents, code and tasks tell nothing."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpora: set NEURAXIS_CORPORA to a folder that holds prompts.jsonl")
    lines = (folder / "prompts.jsonl").read_text(encoding="utf-8").splitlines()[::3]
    texts = [row["text"] for row in map(json.loads, lines) if row["label"] != "attack"]
    learned = sum(bool(facts_in(text)) for text in texts)
    assert len(texts) > 1_000
    assert learned / len(texts) < 0.01
