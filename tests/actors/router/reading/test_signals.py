"""What is read from texts."""

from hypothesis import given
from hypothesis import strategies as st

from actors.router import phrases
from actors.router.signals import BLANK, CLOSING_CHARACTERS, INSPECTED_CHARACTERS, OPENING_CHARACTERS, read_text
from tests.each import each

INVISIBLE = ["", " ", "\n\t \r\n", "\u00a0\u3000", "\u200b", "\ufeff \u2060", "\x00", "\u200e\u202a\u2069"]


@each("text", INVISIBLE)
def test_nothing_visible_is_blank(text: str):
    assert read_text(text) == BLANK


@each("text", [".", "?", "a", "\u200bx", "👍", "\ud800"])
def test_anything_visible_is_not_blank(text: str):
    assert read_text(text).prompt_token_count == 1


@each(
    "text",
    [
        "Is it done?",
        "Really?!",
        'He asked "why?"',
        "Why? I forgot.",
        "你好吗？",
        "هل تسمعني؟",
        "What?\u200b"[:5],
        "a?)",
    ],
)
def test_a_question_mark_ends_a_word(text: str):
    assert read_text(text).has_question_mark


@each("text", ["https://example.org/search?q=1", "x?.y", "no mark at all", "int?x", "a??b"])
def test_a_mark_inside_a_word_asks_nothing(text: str):
    assert not read_text(text).has_question_mark


@each(
    "text",
    [
        "what is the capital of Peru", "What was the capital of Peru", "Whose turn is it", "whats the time",
        "where's my order", "When does it open", "why not", "How do I get there", "how about lunch", "Which is better",
        "Can you deploy this", "Could someone help me", "Is it raining", "Isn't that great", "did you see it",
        "Do you know him", "do ducks sleep", "Have you met", "Will it rain", "May I come in", "Should I wait",
        "Hi, can you deploy this", "ok so what now", "The build is broken. Can you fix it",
        "The build is broken\nwhat should I do", "If it fails, what should I do", "I said it: where is it",
        "You deployed it?", "- how long is it",
    ],
)  # fmt: skip
def test_a_wh_word_or_an_auxiliary_that_opens_a_sentence_asks(text: str):
    assert read_text(text).interrogative_words


@each(
    "text",
    [
        "The build is broken", "I know what you mean", "That is what it does", "Do it now", "Do the dishes",
        "Do not touch this", "Have a nice day", "Will Smith is an actor", "What a lovely day", "How nice of you",
        "When I run the tests they fail", "Who knows", "What you said makes sense", "Which is why I left",
        "Whatever you like", "Howard called", "Isabel is here", "Candles are useful", "Would love to see that",
        "Was great fun", "Is broken again", "I told him, who is my friend, to go",
    ],
)  # fmt: skip
def test_the_same_words_elsewhere_do_not_ask(text: str):
    assert not read_text(text).interrogative_words


@each(
    "text",
    [
        "Hi", "hey!", "HELLO THERE", "yo", "sup", "Good morning, everyone", "Hi Martha", "Hello, Bob!",
        "hey, how are you?", "Hi!!! 😀", "“Hello”", "hiiii", "Bye!", "Good night, sleep well", "Hi, nice to meet you",
        "👋",
    ],
)  # fmt: skip
def test_a_greeting_is_one(text: str):
    assert read_text(text).greeting_pattern


@each(
    "text",
    [
        "yo-yo", "Yo-yo tricks", "hi-fi systems", "Hello-world programs", "His name is Bob", "Yonder stands a tree",
        "I said hi", "Hello Kitty merchandise", "morning sickness remedies",
    ],
)  # fmt: skip
def test_a_word_that_only_starts_like_a_greeting_is_none(text: str):
    assert not read_text(text).greeting_pattern


@each(
    "text",
    [
        "Hi, can you deploy this?", "Hi can you deploy this", "hi, fix the typo in the heading",
        "Hello, my build is broken", "Hello, you have a memory leak in parser.c", "Hey, help",
        "Hi, it is raining in the server room",
    ],
)  # fmt: skip
def test_a_request_or_report_behind_a_greeting_makes_it_that(text: str):
    assert not read_text(text).greeting_pattern


@each(
    "text",
    [
        "Thanks!", "thank you so much", "thx", "Perfect", "That was really helpful", "Thanks, that fixed it",
        "not bad at all", "Great answer, I learned something", "you’re right", "Got it, thank you",
        "Thanks for explaining the tax rules so clearly", "ok", "👍", "Thank you, Anna",
    ],
)  # fmt: skip
def test_thanks_praise_and_acceptance_are_positive(text: str):
    assert read_text(text).explicit_feedback == "positive"


@each(
    "text",
    [
        "not helpful", "Not helpful at all", "that's not correct", "That is not correct.", "that’s not correct",
        "No, that's wrong", "that isn't right", "this answer is not helpful", "Your answer was useless",
        "Thanks, but that's not what I asked", "Great, but this is wrong", "it was not that helpful", "not great",
        "I don't think that's right", "You misunderstood", "this doesn't help", "wrong",
    ],
)  # fmt: skip
def test_disapproval_and_denied_praise_are_negative(text: str):
    assert read_text(text).explicit_feedback == "negative"


@each(
    "text",
    [
        "The great wall of China", "Is it any good?", "What is a useful tool for this?",
        "Thanks, now delete the branch", "Thank you for the help now deploy it",
        "Great work on the report, now turn it into slides", "Thanks, I need another one", "correct the spelling",
        "Why is it wrong to lie?", "The wrong door", "no thanks", "The answer is 42",
    ],
)  # fmt: skip
def test_words_of_praise_or_blame_in_other_matters_are_no_feedback(text: str):
    assert read_text(text).explicit_feedback is None


@each(
    "text",
    [
        "Do you remember the name of my dog?", "you remember that one", "What did we discuss about the lease?",
        "As we discussed, buy it", "as I said, it is late", "what was it you suggested", "What did we do last time?",
        "the number I gave you earlier", "Where did we leave off?", "Have we talked about this before?",
        "our last conversation", "what was my last question", "we've already agreed on that",
    ],
)  # fmt: skip
def test_a_reference_to_shared_history_is_noticed(text: str):
    assert read_text(text).implicit_reference


@each(
    "text",
    [
        "What was the capital of Peru", "The last time it rained was in May", "When was the last time Brazil won?",
        "Remember to buy milk", "I woke up earlier than usual", "My first question is about taxes", "I told my boss",
        "He said it was fine", "The book that I wrote", "It was discussed in parliament",
    ],
)  # fmt: skip
def test_the_past_alone_is_no_shared_history(text: str):
    assert not read_text(text).implicit_reference


GAPS = (*[" "] * 6, ", ", ". ", "\n", "  ")
REFERRING = (
    "do", "did", "you", "we", "i", "our", "my", "your", "remember", "remind", "me", "what", "discussed", "talked about",
    "have", "just", "already", "said", "told", "told me", "mentioned", "asked", "last", "last time", "the", "earlier",
    "conversation", "question", "where", "left", "as", "like", "that", "it", "and/or", "said_did", "last time_x",
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(REFERRING), st.sampled_from(GAPS)), max_size=60))
def test_a_reference_is_found_around_its_words_wherever_a_search_of_the_whole_text_finds_one(words: list):
    text = "".join(word + gap for word, gap in words)
    found = any(reference.pattern.search(text) for reference in phrases.IMPLICIT_REFERENCES)
    assert read_text(text).implicit_reference == found


@each(
    ("text", "tokens", "density"),
    [("one", 1, 1.0), ("go go go go", 4, 0.25), ("The the cat", 3, 0.666667), ("Well, well.", 2, 0.5), ("? !", 2, 1.0)],
)
def test_density_is_the_share_of_different_words(text: str, tokens: int, density: float):
    read = read_text(text)
    assert (read.prompt_token_count, read.information_density) == (tokens, density)


def long_text(middle: str, closing: str = "done.") -> str:
    opening = ("a word of no importance " * 100)[:OPENING_CHARACTERS]
    return opening + middle.center(10 * INSPECTED_CHARACTERS) + closing.rjust(CLOSING_CHARACTERS)


def test_the_middle_of_a_long_text_changes_nothing():
    assert read_text(long_text("What did we discuss last time?")) == read_text(long_text("x"))


def test_a_question_at_the_end_of_a_long_text_is_seen():
    assert read_text(long_text("x", "Do you remember what we discussed?"))[1:3] == (True, True)
    assert read_text(long_text("x", "Do you remember what we discussed?")).implicit_reference


def test_a_long_text_with_blank_ends_is_not_blank():
    assert read_text(" " * 5000 + "x" + " " * 5000).prompt_token_count == 1


def test_a_megabyte_is_read():
    assert not read_text("word " * 200_000).has_question_mark


HOSTILE = [
    "?" * (INSPECTED_CHARACTERS - 1) + "x",
    "." * (INSPECTED_CHARACTERS - 1) + "x",
    "\n" * (INSPECTED_CHARACTERS - 1) + "x",
    "hi " * 39 + "x",
    "thanks for " * 19 + "x",
    "thank you so much " * 9 + "x",
    "good good morning " * 12 + "x",
    "not very very " * 12 + "x",
    "we had have just already " * 100 + "x",
    "i said a b c " * 190 + "x",
    "ok well " * 19 + "what",
    "so what " * 300,
    "ha" * 1200 + "x",
    "e" * INSPECTED_CHARACTERS,
    ("a" * 60 + " ") * 39 + "x",
    "you said said told " * 120 + "x",
    "last time earlier i said a b c " * 80 + "x",
    ", " * 1_200 + "x",
]


@each("text", HOSTILE, named=lambda text: text[:12].strip())
def test_repetition_is_read_to_its_end(text: str):
    assert read_text(text).prompt_token_count == len(text.split())
