"""The gateway over HTTP: requests of applications, orchestrators and external engines to a running set.

A request becomes an event in the log and waits for the event that answers it; nothing is decided here. The state kept
is a bounded projection, which a restart rebuilds from the log. One thing is kept in this process only: which part of
each chat the guards have read.

``openai``              any client of OpenAI's: chats, models
``guard``               checks without an answer, moderations
``loops``               whether an orchestrator's loop runs again (reflection guardrails); states of agents (ticks)
``operator_endpoints``  orders of operators, such as a verdict on an exchange, or a breaker's reset
``records``             exchanges, explanations of their decisions, events
``dashboard``           the page that shows them
``metrics``             what Prometheus reads
``feedback``            how an exchange turned out, by its application
``callers_trace``       the trace context of a caller
``health``              probes
``access``              middleware: keys, limits, headers against foreign web pages
``keys``                API keys
``scopes``              which endpoint needs which scope of a key
``bodies``, ``routes``  what the bodies and the routes of several endpoints share
``failures``            errors as responses
``app``                 the application with all endpoints
``server``              the HTTP server that runs it

Importing this package loads no web framework; ``app`` and ``server`` do.
"""
