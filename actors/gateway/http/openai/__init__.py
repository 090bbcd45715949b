"""The endpoints for any client of OpenAI's: ``/v1/chat/completions`` and ``/v1/models``.

``endpoints``               the endpoints
``requests``                reads bodies as tolerantly as OpenAI does
``messages``                the text of messages that the guards read
``conversation_histories``  which part of a conversation was read before
``chat_inputs``             turns a request into an input
``chat_service``            sends the input and waits for its end
``streamed_text``           the text of an answer while a model generates it
``answers``, ``chunks``     turn an end into a completion, or into a stream of chunks
``failures``                errors in OpenAI's shape
``streaming_response``      sends a body piece by piece
``forwarding``              forwards a request for another model: ``upstream``, ``relayed_answer``, ``passthrough``
"""
