"""Personal data in a prompt: hidden from the model that it goes to, and put back into its answer.

``recognising`` what counts as personal data   ``masking`` placeholders for it, and back, whole or piece by piece
``settings``    for whom it is done
"""
