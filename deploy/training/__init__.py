"""Training of the guards' learned parts: the scorer of ``intuition`` and the trust evaluator of ``appraisal``.

``neuraxis train detection FILES`` writes both weights files from labelled prompts (JSON Lines with ``text``, ``label``,
``category`` and ``source``). It needs scipy (the extra ``train``). The same input gives the same bytes.
"""
