"""The gateway over HTTP: the requests of orchestrators and external engines to a running set.

A request becomes an event in the log and waits for the event that answers it; nothing is decided here. The state kept
is a bounded projection, which a restart rebuilds from the log. One thing is kept in this process only: which part of
each chat has been read.

``openai``              any client of OpenAI's: chats, models
``guard``               checks without an answer, moderations
``loops``               source G's loops, and ticks
``operator_endpoints``  verdicts and allowances of operators
``records``             exchanges, why, events
``dashboard``           the page that shows them
``metrics``             what Prometheus reads
``telemetry``           a caller's trace, and where the workers tell their metrics
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
