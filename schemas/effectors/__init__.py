"""The effector contract, and how an actor asks a language model: settings, and a call as events carry it."""
