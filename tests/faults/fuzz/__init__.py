"""Bad input for a running set: on every subject, and in every HTTP body.

``payloads``  what is wrong with a body, or with headers
``bodies``    the same for HTTP, by the gateway's own OpenAPI document
"""
