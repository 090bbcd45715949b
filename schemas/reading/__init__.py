"""How texts are read by the parts that judge them: folding, tokens, word classes, decoded views, n-grams and counts.

Pure functions of a text, with no state but caches, shared by the learned scorer of ``intuition`` and the trust
evaluator of ``appraisal``. Their weights were trained on exactly these numbers: a change here needs new weights. Only
``terms`` rests on none: the telling words that memory and self-review compare texts by.
"""
