"""What an answer of a model reveals, read from its whole text or while it arrives. Pure.

``prompt`` what the model was asked  ``leaks`` its system prompt  ``links`` addresses that carry words away
"""
