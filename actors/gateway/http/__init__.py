"""The gateway over HTTP: what orchestrators and engines outside ask of a running set.

A request becomes an event in the log, and waits for the event that answers it; nothing is decided here. What is kept
is a bounded projection, which a restart reads from the log again; of chats, what was read of them in this process.

``openai``              any client of OpenAI's: chats, models
``guard``               checks without an answer, moderations
``loops``               source G's loops, and ticks
``operator_endpoints``  verdicts and allowances of operators
``records``             exchanges, why, events
``dashboard``           the page that shows them
``metrics``             what Prometheus reads
``health``              probes
``access``              who may come in, and how much of it
``keys``                API keys
``scopes``              which endpoint takes which key
``audit``               what operators do, on record
``bodies``              requests and responses as structs
``failures``            what went wrong, as a response
``app``                 the application of all this
``server``              the server under it

Importing this package loads no web framework; ``app`` and ``server`` do.
"""
