"""Training of the learned models: the scorer of ``intuition``, and the trust evaluator and turn model of ``appraisal``.

``neuraxis train detection FILES`` writes the weights of the first two from labelled prompts (JSON Lines with ``text``,
``label``, ``category`` and ``source``). It needs scipy (the extra ``train``). The same input gives the same bytes.
"""
