"""What an answer of a model gives away, read from its whole text or while it comes. Pure.

``prompt`` what the model was asked  ``leaks`` its system prompt  ``links`` addresses that carry words away
"""
