"""Checks without an answer, for applications that call models themselves.

``bodies``      requests and answers                 ``service``     has inputs checked, and reads the guards' events
``categories``  verdicts as OpenAI's moderations     ``endpoints``   ``/v1/guard`` and ``/v1/moderations``
"""
