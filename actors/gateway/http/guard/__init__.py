"""Checks without an answer, for applications that call models themselves.

``bodies``      what is sent, and what is answered        ``service``     has inputs checked, and reads what guards said
``categories``  verdicts as OpenAI's moderations          ``endpoints``   ``/v1/guard`` and ``/v1/moderations``
"""
