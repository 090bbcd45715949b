"""What an answer of a model reveals, read from its whole text or while it arrives. Pure.

``prompt``      what the model was asked, with which its answer is compared
``leaks``       how much of the system prompt is in the answer
``pictures``    pictures whose URLs send words of the prompt to another host
``credentials`` keys and passwords
``window``      all of these while the answer arrives, piece by piece
"""
