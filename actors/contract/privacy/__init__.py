"""People's data in a prompt, kept from the model that it goes to, and put back into what that answers.

``recognising`` what is data of that kind  ``masking`` placeholders for it, and back, whole or piece by piece
``settings``    for whom it is done
"""
