"""The endpoints for any client of OpenAI's: ``/v1/chat/completions`` and ``/v1/models``.

``requests``                bodies, read as tolerantly as OpenAI reads them
``messages``                what the guards are given of them
``conversation_histories``  what of a conversation was read before
``questions``               from a request to an input
``conversations``           sends the input, and waits for its end
``streamed_text``           an answer's text while a model speaks
``answers``, ``chunks``     from an end to a completion, to events
``failures``                errors in OpenAI's shape
``streaming_response``      what comes piece by piece, while somebody reads
``endpoints``               the endpoints
"""
