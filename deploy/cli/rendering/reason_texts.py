"""Plain words for the stages, actions, modes and reasons in an exchange's end. Pure.

An end (``response.emitted``) has a stage, an action and a reason. Most reasons are from a closed list, which is here;
others are names that somebody gave to a pattern set or a precedent. ``docs/decisions-explained.md`` has
the same words.
"""

from collections.abc import Mapping

from schemas.vocabulary.breaker import Stance
from schemas.vocabulary.memory import RetiredWhy
from schemas.vocabulary.reflex import AnswerFault
from schemas.vocabulary.responder import Action, Stage
from schemas.vocabulary.router import Mode

STAGES: Mapping[Stage, str] = {
    "REFLEX": "known attacks, word for word",
    "INTUITION": "likeness to situations that did harm before, and a learned scorer",
    "COHERENCE": "whether answering fits the constitution, what is known, and the state of the whole",
    "BREAKER": "the trust that a session has left",
    "ARBITER": "what is decided by precedent, before anybody deliberates",
    "DELIBERATIVE": "the deliberation: memory, the router's choice of a mode, the answer",
}
"""Stage -> what it judges, in the order in which an input reaches them."""

ACTIONS: Mapping[Action, str] = {
    "EXECUTED": "Answered",
    "PASSED": "Let pass",
    "BLOCKED": "Refused",
    "REJECTED": "Refused",
    "WITHHELD": "Withheld",
    "FAILED": "Not answered",
}
"""Action -> the first word of a sentence about it."""

LET_PASS = frozenset[Action]({"EXECUTED", "PASSED"})
"""The actions of ends that are neither refusals nor failures."""

MODES: Mapping[Mode, str] = {
    "RESPOND": "with an answer",
    "CLARIFY": "with a question back",
    "ACKNOWLEDGE": "with an acknowledgement",
    "IGNORE": "with no words",
    "ACT": "after looking things up",
}
"""Mode -> how an input is answered in it. ACT is no mode of an answer: when its loop has ended, another is selected."""

UNREAD = "UNREAD"
"""The reason of coherence's refusal of an input that it could not look at whole."""

COHERENCE: Mapping[str, str] = {
    "DISSONANT": "answering it would not fit what this system is bound to, or knows",
    UNREAD: "too much of it could not be looked at within the work that one input may cost",
}
"""Reason of a refusal by coherence -> its words."""

RULES: Mapping[str, str] = {
    "harm": "answering it could do harm",
    "layer_0": "it touches the system's own core",
    "unread": "too much of it could not be looked at",
}
"""Violated rule of the constitution -> what the input does. Other violations: ``flag:`` and a pattern set's name."""

BREAKER: Mapping[str, str] = {
    "role_confusion": "it looks like an attempt to take over the conversation, and broke the session's trust",
    "context_saturation": "it floods the conversation with text of little truth, and broke the session's trust",
    "unappraised": "nothing of it could be appraised, so nothing vouches for it",
    "record_full": "there is no room left to keep account of another session",
    "violated": "the session is on hold after an earlier violation",
    "recovery": "the session is rebuilding its trust after an earlier violation",
    "terminated": "the session was ended for good by an earlier violation",
    "attempts_used_up": "it ended the session: a violation after every attempt to recover was used up",
    "attempt_budget": "it ended the session: recovering took more turns than are allowed",
    "breakers_in_session": "it ended the session: too many violations in it",
    "recent_falsehood": "it ended the session: too many of its latest inputs read like attempts to deceive",
    "balance_trend": "it ended the session: its latest inputs were, on average, more false than true",
    "refusal_share": "it ended the session: too large a share of its inputs was refused",
    "violation_count": "it ended the session: too many violations of all kinds",
}
"""Reason for which the breaker refuses, or gives a fixed notice -> its words."""

ARBITER: Mapping[str, str] = {
    "constitutional_risk": "the risk to the constitution was confirmed",
    "harmful_precedent": "an earlier input like it did harm",
    "unknown_outcome": "what is known of inputs like it could not be had",
}
"""Reason of a refusal by the arbiter -> its words."""

UNSERVED: Mapping[str, str] = {
    "no_owner": "no worker runs it",
    "recovering": "its worker has not caught up with the log",
    "stalled": "its worker makes no progress",
}
"""Why a stage is not served. In a reason the stage's name follows: ``no_owner: arbiter``."""

MODEL_FAILURES: Mapping[str, str] = {
    "no_model": "the endpoint has no such model",
    "endpoint_unreachable": "its endpoint cannot be reached",
    "endpoint_overdue": "its endpoint took too long",
    "endpoint_refused": "its endpoint refused the request",
    "circuit_open": "its endpoint failed so often of late that it was not asked",
    "answer_invalid": "what came is not what was asked for",
    "answer_filtered": "its endpoint's filter left nothing of the answer",
    "answer_empty": "the answer had no words",
    "no_time": "there was no time left to ask",
    "deadline": "the deadline passed first",
    "effect_raised": "asking it raised an error",
    "effect_timed_out": "asking it took too long",
    "effect_abandoned": "asking it ended its worker again and again",
    "result_invalid": "what came of asking cannot be recorded",
    "text_forgotten": "the words it was asked with are forgotten",
    "append_refused": "the broker does not take the answer",
    "undecodable": "the request could not be read",
    "unknown_version": "the request is of a newer release",
    "unknown_topic": "the request is of a kind that is not known",
}
"""Why a language model gave no answer."""

ENDINGS: Mapping[str, str] = {
    "length": "it ended at the length that was allowed",
    "content_filter": "its endpoint's filter ended it",
    "unknown": "its endpoint ended it without a word on why",
}
"""How a model's answer ended, if it may be incomplete."""

GUARDRAILS: Mapping[str, str] = {
    "appraisal_failed": "guardrails did not judge it, since its appraisal failed",
    "guardrails_failed": "guardrails failed to judge it",
    "guardrails_silent": "guardrails did not judge it in time",
    "guardrails_repeated": "guardrails did not judge it: its loop was judged before, under the same name",
    "max_reruns_reached": "guardrails let it out after the last rerun they allow",
    "bias_echo_detected": "guardrails let it out: the answers repeat a bias",
    "fatigue_threshold_exceeded": "guardrails let it out: more reruns would tire rather than help",
}
"""The second part of the reason of a model's answer, behind the mode -> what it says about the answer."""

RETIRED: Mapping[RetiredWhy, str] = {
    "replaced": "another value was told",
    "corrected": "it was said to be wrong",
    "ended": "it was said to hold no longer",
    "withdrawn": "the person asked to have it forgotten",
}
"""Why memory retires a fact, in its event about an exchange."""

CHECK_REASON = "check"
"""The reason of an end that passed every guard, of an input that was sent only to be checked."""

FORWARD_REASON = "forward"
"""The reason of an end that was answered by a model of the sender's own."""

ANSWER_FAULTS: Mapping[AnswerFault, str] = {
    "prompt_leak": "the model's answer gives the system prompt away",
    "carrying_link": "a picture in the model's answer would carry words of the prompt away",
    "secret": "the model's answer has a key or a password in it",
    "orders": "the model's answer has orders to a model in it",
}
"""Why a model's answer is withheld."""

DELIBERATIVE_FAILURES: Mapping[str, str] = {
    "deliberation_deadline": "the deliberation did not end in time",
    "mode_not_answerable": "there is no way to answer in the mode that was chosen",
    "upstream_unreachable": "the endpoint of the model that it was forwarded to cannot be reached",
    "upstream_overdue": "the model that it was forwarded to took too long",
    "upstream_refused": "the endpoint of the model that it was forwarded to refused it",
    "upstream_cut": "the answer of the model that it was forwarded to broke off",
    "upstream_silent": "nobody told what the model said that it was forwarded to",
    "client_left": "nobody waited for the answer of the model that it was forwarded to",
}
"""Reason why an input that the guards let pass got no answer -> its words."""

STANCES: Mapping[Stance, str] = {
    "normal": "is answered as usual",
    "cautious": "has lost trust, or its next violation would be the last: a model is told to take care",
    "guarded": "is close to being stopped: an answer has no memories in it, and a model is told to be brief",
    "terminated": "gets a fixed notice only",
}
"""The breaker's stance -> how the session is answered under it."""

DEADLINE = "deadline"
"""The reason of an exchange that its deadline ended."""

LLM_FAILED, RERUN_FAILED = "llm_failed", "rerun_failed"
"""Parts of a reason: a language model gave no answer, or none when its answer was to be written again."""
