"""The gateway over HTTP: what orchestrators and engines outside ask of a running set.

A request becomes an event in the log, and waits for the event that answers it; nothing is decided here. What is kept
is a bounded projection, which a restart reads from the log again; of chats, what was read of them in this process.

``bodies``      requests and responses as structs       ``answers``  from guardrails' events to responses
``judgements``  the projection, and waiting for answers  ``desk``     appends an event and waits for its answer
``loops``, ``ticks``, ``health``: the endpoints         ``failures`` what went wrong, as a response
``door``        who may come in, and how much of it     ``keys``     API keys
``openai``      the endpoint for any client of OpenAI's  ``terms``    how long requests wait
``app``         the application of all this             ``serving``  the server under it

Importing this package loads no web framework; ``app`` and ``serving`` do.
"""
